"""Gandiva_fair (EuroSys 2020): trading, stride scheduling, lotteries, and the complete system."""
