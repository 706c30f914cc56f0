"""Honest numbers over graded rows: pure functions, items as clusters.

=====================  ===========================================================
``rows``               one grader's table as whole-number columns
``intervals``          ratios over items with their interval
``patterns``           items collapsed to patterns, and the bootstrap over them
``one_arm``            accuracy, consistency, spread: what `metrics.summarize` reports
``selection_bias``     slots and letters: picks, recalls, shifts
``flips``              pairs of orientations: agreement and flips
``labels``             place or letter? needs rows with shuffled labels
``pairing``            the rows that two arms share
``paired``             differences of two arms
``significance``       McNemar, sign flips, Holm, bootstrap of a difference
``power``              what could have been seen, and how many items would do
``ranking``            order of many arms
=====================  ===========================================================
"""
