"""Where instances come from: seeded generators and real tables, one file each."""
