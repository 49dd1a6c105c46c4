"""System messages that a conversation itself begins with, as imported ones do, are never summarized away."""

from pathlib import Path

from turnfold import Settings, new_id, open_session, open_store, text_message

PROMPT = "You are Skipper. Production is read-only unless the developer says go."


async def test_a_stored_system_prompt_stays_through_compactions_and_restarts(tmp_path: Path) -> None:
    """It opens every view verbatim, once, after several compactions, in a new process's session and on a fork."""
    settings = Settings(store=str(tmp_path / "store.db"), context_window=1_500, counter="chars4")
    versions = []
    async with open_store(settings) as store:
        async with open_session(store, settings) as session:
            await session.append(text_message("prompt", "system", PROMPT))
            for number in range(40):
                await session.say(f"question {number}: " + "about the harbour " * 12)
                prepared = await session.prepare()
                assert [message.text for message in prepared.messages].count(PROMPT) == 1
                assert prepared.messages[0].text == PROMPT
                versions.append(prepared.version)
                await session.reply(text_message(new_id(), "assistant", f"answer {number}: " + "it is so " * 12))
            assert len({*versions}) > 3
            await session.switch((await session.fork()).name)
            await session.say("and now?")
            assert (await session.prepare()).messages[0].text == PROMPT
        async with open_session(store, settings) as again:
            await again.say("still there?")
            assert (await again.prepare()).messages[0].text == PROMPT


async def test_a_system_message_in_mid_conversation_is_history(tmp_path: Path) -> None:
    """Only what comes before any other message is a prompt: a later one may be summarized."""
    settings = Settings(store=str(tmp_path / "store.db"), context_window=1_500, counter="chars4")
    async with open_store(settings) as store, open_session(store, settings) as session:
        await session.say("hello")
        await session.append(text_message("note", "system", "The user opened the door."))
        await session.append(text_message("hi", "assistant", "hi"))
        for number in range(12):
            await session.say(f"question {number}: " + "about the harbour " * 12)
            await session.prepare()
            await session.reply(text_message(new_id(), "assistant", f"answer {number}: " + "it is so " * 12))
        assert "note" not in await session.context_ids()
