"""KAI Scheduler (NVIDIA): fair shares of queues, and who is admitted and reclaimed by them."""
