"""How much a lie can pay: for each policy the worst family of markets, and a bound that is proved."""
