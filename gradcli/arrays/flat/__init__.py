"""Flat programs: functions of arrays as steps on fixed memory, which run in one call."""
