"""What a recipe is made of: its arms, and what they say side by side.

==================  ==============================================================
``recipe_file``     a file of recipes, before it is understood
``spec``            a recipe and its arms, as they are written
``grid``            one arm for each combination of values
``twinkle_config``  a configuration of Twinkle Eval read as a recipe
``running``         one arm in a run of its own
``arm_result``      what became of one arm
``recipe_run``      what became of a whole recipe
``arm_rows``        the table of arms, with what only several arms can say
``rankings``        numbers of the comparison as a whole
``views``           tables by repeat and of choices, points of a temperature plot
``comparison``      all of these put on record, in a run of their own
``stored_arms``     finished arms to be read again
==================  ==============================================================
"""
