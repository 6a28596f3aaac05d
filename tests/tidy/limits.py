"""The limits of the measures of language and layout. They only fall: lower one as soon as the figure is below it."""

# Functions; words in a hundred of docstrings; modules in a folder.
PARTICIPLES_MAX = 0
RELATIVE_MAX = 1.1
SPEECH_MAX = 0.02
FOLDER_MAX = 15
# Words a sentence on average, in the pages that are read first; words of any sentence of any page.
AVERAGE_MAX = 15
SENTENCE_MAX = 40
# Names in words that are no terms of the field.
IDENTIFIERS_MAX = 0
