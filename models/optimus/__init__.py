"""Optimus (EuroSys 2018): GPUs one by one to the job whose remaining time falls most."""
