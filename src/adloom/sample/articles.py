"""What The Hedgerow has to say."""

from typing import Final

import msgspec

from adloom.sample.pictures import Picture


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """A story: its picture, its words, and where it stands."""

    key: str
    section: str
    title: str
    lead: str
    author: str
    minutes: int
    subject: str
    palette: str
    text: tuple[str, ...]
    is_long: bool = False

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/sample/articles/{self.key}"

    def picture(self, width: int, height: int) -> Picture:
        """Its picture, in a size."""
        return Picture(self.subject, self.palette, width, height)


ARTICLES: Final = (
    Article(
        key="what-the-hedge-knows",
        section="Outside",
        title="What the hedge knows about November",
        lead="It keeps the wind from the field, the robin from the cat, and its thoughts to itself.",
        author="Ida Marlowe",
        minutes=4,
        subject="hills",
        palette="plum",
        text=(
            (
                "The hedge has seen more Novembers than any of us. It was planted to keep sheep out of the "
                "barley, and has long forgotten both. What it does now is harder to name: it slows things "
                "down. Wind, rain, walkers, news."
            ),
            (
                "Stand beside it for ten minutes and you will be passed by a wren, a dog with opinions and "
                "a man who says that it will rain. He is right about half of the time, which is better "
                "than the forecast and much better company."
            ),
            (
                "What strikes you, if you come often, is how little it asks. The hedge does not want to "
                "know who you are. It does not follow you home to find out what else you looked at. It "
                "shows you its berries and lets you go, and somehow you come back."
            ),
            (
                "There is a lesson in this for anybody who puts things in front of other people: gates, "
                "signs, paintings, advertisements. Be worth looking at where you are. Then be quiet."
            ),
            (
                "In December the hedge will be cut. It does not mind. It has been cut four hundred times "
                "and has answered each time in the same way, in April, in green."
            ),
        ),
    ),
    Article(
        key="the-long-way-round",
        section="Walks",
        title="The long way round",
        lead="Nineteen miles between two villages that are three apart. A defence of the detour, in full.",
        author="Tom Ferrers",
        minutes=14,
        subject="signpost",
        palette="moss",
        is_long=True,
        text=(
            (
                "There is a bus from Little Wick to Great Wick. It takes nine minutes and costs less than a "
                "cup of tea. I mention it so that nobody can say that I did not know."
            ),
            (
                "The path leaves Little Wick behind the church, where it pretends to go somewhere else. It "
                "climbs through beeches that have dropped all that they had, so that the hill is bare above "
                "and gold below, like a coin that somebody turned over."
            ),
            (
                "By eleven I had met two people. The first was painting a gate. The second wanted to know "
                "whether the gate was dry. I carried this question back two hundred yards, and the answer "
                "forward again, and felt more useful than I had all year."
            ),
            (
                "A detour is not the opposite of a plan. It is a plan with room in it. The straight line "
                "knows where you will be at noon; the detour knows that at noon there will be a bench."
            ),
            (
                "There was a bench. It was dedicated to Margaret, who loved this view. I have thought about "
                "Margaret a good deal since. She must have had a great deal of time, or known how little of "
                "it is needed."
            ),
            (
                "Great Wick has a pub, and the pub has a fire. My boots steamed. The man beside me had come "
                "by bus, and asked what had kept me. I told him about the gate."
            ),
        ),
    ),
    Article(
        key="forty-books",
        section="Reading",
        title="Forty books for the dark months",
        lead="Short ones for the train, long ones for the flu, and one to press flowers in.",
        author="Nell Okafor",
        minutes=6,
        subject="books",
        palette="rose",
        text=(
            (
                "Every November somebody asks me for one book, and every November I give them five, because "
                "one book is a test and five are a party."
            ),
            (
                "Begin with something short. The evenings are long, but patience is not, and there is no "
                "pleasure like closing a book on the day that you have opened it. Novellas were made for "
                "the hour between the last light and the first lamp."
            ),
            (
                "Then take one that is far too long. Do not try to finish it. Live in it, as in a house with "
                "more rooms than you need, and shut the doors of those that are cold."
            ),
            (
                "Read something that was printed before you were born, in the copy of somebody who wrote in "
                "the margins. You will get two authors for the price of one, and the second is often the "
                "funnier."
            ),
            (
                "The remaining thirty-six are on the shelf behind the counter at Paper Moon, where they will "
                "be glad to argue with you about all of them."
            ),
        ),
    ),
    Article(
        key="a-kettle-of-ones-own",
        section="Kitchen",
        title="A kettle of one's own",
        lead="On the shortest ceremony there is, and how not to hurry it.",
        author="Hanne Lind",
        minutes=3,
        subject="teapot",
        palette="honey",
        text=(
            (
                "It takes four minutes to boil a kettle and three to draw a pot. In these seven minutes "
                "nothing can be asked of you. You are busy. You are making tea."
            ),
            (
                "Warm the pot first. It makes no difference that anybody has ever measured, and it makes all "
                "the difference."
            ),
            (
                "Use leaves, and more of them than it says. Pour from higher than you dare. Put the lid on, "
                "and then, this is the important part, do not look at anything with a screen."
            ),
            (
                "Listen. A kettle that has just been emptied ticks as it cools, slower and slower, like a "
                "clock that has decided to stay."
            ),
        ),
    ),
    Article(
        key="light-by-the-hour",
        section="Inside",
        title="Light by the hour",
        lead="Where to put three lamps so that one room becomes four.",
        author="Ida Marlowe",
        minutes=5,
        subject="lamp",
        palette="night",
        text=(
            (
                "A room with one lamp in the middle of its ceiling is a waiting room. You can tell by how "
                "people sit in it: upright, and near the door."
            ),
            (
                "Turn it off. Put a lamp low beside the chair that you read in, so that its light ends at "
                "your knees. Put another where you cannot see it, behind the plant or the piano, pointing "
                "at the wall. The third belongs to the table, and should hang so low that you have to lean "
                "around it to disagree."
            ),
            (
                "Now walk through the evening. At five there is a study, at seven a dining room, at nine a "
                "cave. You have not moved a single piece of furniture."
            ),
            "The light bill, for those who ask, goes down.",
        ),
    ),
)
ARTICLE_BY_KEY: Final = {article.key: article for article in ARTICLES}
