"""The benchmark harness: instances, contenders and tasks as objects; runs that verify before they time; reports."""
