"""What torture found of chats that others write to: nothing is passed over, or said twice."""

from story import story_of

from tripod.chat import reader, writer
from tripod.projections.chat.format import format_line
from tripod.projections.chat.tables import chat_position_index

CHAT = "chat/live.chat"


def test_a_line_whose_sender_is_not_in_the_header_is_not_passed_over() -> None:
    """The position of who seemed to talk alone was written behind it, and then taken in."""
    with story_of(("create", "live"), ("say", "live", "ann", "one")) as story:
        story.original.append(CHAT, format_line("eve", story.clock.seconds, "by hand") + b"\n")
        with story.team() as team:
            team.refresh()
            assert [one.text for one in reader.unread(team, "live", "ann")] == ["by hand"]
            assert chat_position_index(team.source, "live", "ann") == 0


def test_an_older_file_of_a_chat_that_was_split_off_whole_says_nothing_again() -> None:
    """What stood in it was taken in as new: the file that was left begins as any other does."""
    with story_of(("create", "live"), ("say", "live", "ann", "one")) as story:
        older = (story.root / CHAT).read_bytes()
        story.run([("archive", "live", 0)])
        (story.root / CHAT).write_bytes(older)
        with story.team() as team:
            team.refresh()
            assert reader.messages(team, "live") == []
            writer.send(team, "live", "bob", "two")
            shown = [one.text for one in reader.messages(team, "live")]
    assert shown == ["two"]
