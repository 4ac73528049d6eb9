"""What is claimed by Gandiva_fair (EuroSys 2020), and the computations that decide it."""
