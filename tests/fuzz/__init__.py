"""A fuzzer: hostile files and command lines, in this process, until something breaks its promise.

    python -m tests.fuzz --seconds 60
    python -m tests.fuzz --cases 1000000 --state reports/fuzz/counts.json
    python -m tests.fuzz --only trace --seed 7 --cases 1

A case may end well or in an error that is meant for the user. Anything else is a finding: another exception, exit code 70, more
than ten seconds, a number that is not finite in an answer, a file left behind.
"""
