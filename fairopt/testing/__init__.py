"""Tools to test plug-ins: conformance suites and Hypothesis strategies; needs the extra "testing"."""
