"""The machinery behind the ledger: searching, proving, citing, checking, and writing down what was found."""
