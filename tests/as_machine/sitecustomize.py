"""Read by Python when it starts: a process of a test is on the machine of the test."""

import os

import machines

if machines.VARIABLE in os.environ:
    machines.answer_as(os.environ[machines.VARIABLE], setattr)
