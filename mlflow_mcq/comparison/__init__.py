"""Arms beside each other: is one better, by how much, and is it real?

=================  ===============================================================
``arms``           arms read back from their runs
``contrasts``      one arm against the baseline: paired rows, differences, alarms
``deltas``         the same as tables
``answers``        the same in words: what a reader wants to know
``differing``      rows on which arms differ
``figures``        the same in pictures
``page``           one HTML file that needs no network
``notes``          descriptions of runs, in Markdown
``traces``         a sample of rows in *Evaluation runs*
``compare``        the door: reads arms, writes a comparison run
``gate``           stops a build where an arm loses too much
=================  ===============================================================
"""
