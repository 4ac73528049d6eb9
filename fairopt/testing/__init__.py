"""What others test with: conformance suites and Hypothesis strategies; needs the extra "testing"."""
