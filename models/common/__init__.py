"""What policies of several systems share: blocks of programs, and markets made from queues."""
