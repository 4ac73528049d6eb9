"""What came out of the review of the papers' ledger, beyond what the papers claim."""
