"""Every summarizer passes the shipped contract suite whole."""

from tests.rough_counter import RoughCounter
from turnfold.ports import Summarizer
from turnfold.providers.scripted import ScriptedModel
from turnfold.summarizers.extractive import ExtractiveSummarizer
from turnfold.summarizers.model_backed import ModelBackedSummarizer
from turnfold.summarizers.scripted import ScriptedSummarizer, first_characters
from turnfold.testing.summarizer_suite import SummarizerSuite

SUMMARY = "The key was lent; the build was fixed; pushes need a question first."


class TestModelBacked(SummarizerSuite):
    """The summarizer that asks a model."""

    def summarizer(self) -> Summarizer:
        """One with a model that answers well."""
        return ModelBackedSummarizer(ScriptedModel(lambda _: SUMMARY, context_window=16_000), RoughCounter())


class TestScripted(SummarizerSuite):
    """The summarizer that says what it is told to, as a paid one."""

    def summarizer(self) -> Summarizer:
        """One with a good answer for everything."""
        return ScriptedSummarizer(lambda _: SUMMARY)


class TestFirstCharacters(SummarizerSuite):
    """The seed's mock."""

    def summarizer(self) -> Summarizer:
        """As the seed has it."""
        return first_characters(12)


class TestExtractive(SummarizerSuite):
    """The embedded default."""

    def summarizer(self) -> Summarizer:
        """With a rough counter."""
        return ExtractiveSummarizer(RoughCounter().count_text)
