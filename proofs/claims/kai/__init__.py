"""What is claimed by KAI Scheduler's documents (kai-scheduler/KAI-Scheduler, d5bc503a), and what decides it."""
