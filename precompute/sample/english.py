"""Made-up English sentences on many subjects: word lists, a small grammar, and how long they take to say."""

import random
import re

# A line of people opens a subject, whose words go together: people, things with a regular plural, what the former did
# to the latter, where, and clauses that stand alone. Items are separated by "; ", or by spaces where there is none.
_SUBJECT_TABLE = """
people: captain sailor fisherman pilot diver smuggler harbourmaster steward
things: boat anchor rudder sail net crate lantern barrel rope oar compass dinghy mast buoy
deeds: launched hauled lowered salvaged fastened unloaded
places: by the quay; beyond the reef; on the open water; beneath the lighthouse; along the jetty
events: the tide turned before dawn; a gale blew from the west; fog settled over the estuary; gulls circled above the
deck; the waves broke against the cliffs; the current carried the raft away
people: farmer shepherd ploughman dairymaid beekeeper vet neighbour milkman
things: tractor plough barn gate hen pumpkin turnip beehive wagon scarecrow fence goat cow orchard
deeds: inspected sold guarded painted counted fetched
places: behind the stable; in the lower meadow; across the stubble; near the pond; beside the hedge
events: the hay was dry at last; frost killed the early blossom; the cattle refused to move; rain flooded the ditches;
the apples ripened quickly; a fox got into the yard
people: cook baker butcher waiter grocer host chef guest
things: kettle saucepan pie pudding onion carrot teapot recipe spoon oven cake sausage jar pancake
deeds: tasted served weighed warmed spilled wrapped
places: on the stove; in the pantry; at the long table; under the counter; beside the sink
events: the butter melted slowly; smoke filled the dining room; the soup needed more salt; bread was rising under a
cloth; the milk turned sour; supper was late again
people: conductor driver porter passenger signalman inspector guard commuter
things: train carriage engine ticket signal timetable suitcase whistle tunnel bridge wheel trolley
deeds: examined delayed missed checked labelled awaited
places: on the platform; at the junction; inside the tunnel; near the terminus; along the viaduct
events: the express left without warning; steam drifted across the rails; the line was blocked by snow; the points froze
overnight; a whistle sounded in the valley; every seat was taken
people: astronomer observer professor physicist navigator astronaut lecturer amateur
things: telescope planet comet satellite lens mirror crater chart rocket eclipse meteor orbit
deeds: observed measured sketched tracked photographed predicted calculated
places: at the observatory; above the horizon; on the dark side of the moon; beyond the outer planets
events: the sky cleared after midnight; a faint glow rose in the east; Saturn stood high in the south; the northern
lights shimmered until morning; nobody could explain the signal; the moon was almost full
people: doctor nurse surgeon patient dentist chemist midwife pharmacist
things: bandage pill bottle thermometer needle microscope vaccine pillow syringe stretcher ambulance blanket
deeds: requested cleaned prescribed ordered tested carried
places: in the ward; at the clinic; outside the operating theatre; down the corridor; in quarantine
events: the fever broke on the third day; the waiting room was crowded; her pulse grew steady; the medicine tasted of
liquorice; the infection spread to the village; visitors were sent home
people: violinist composer drummer singer organist flautist choirmaster pianist
things: violin trumpet cello melody song drum concerto piano hymn waltz guitar harp symphony
deeds: played rehearsed performed recorded taught praised
places: in the concert hall; behind the curtain; on the bandstand; in the gallery; at rehearsal
events: the audience rose to its feet; the second movement began too fast; the choir sang without notes; applause echoed
round the hall; one string snapped during the solo; the orchestra fell silent
people: teacher pupil headmistress student tutor librarian caretaker examiner
things: pencil textbook desk lesson blackboard essay exam dictionary globe satchel ruler question
deeds: explained corrected borrowed studied copied returned
places: in the classroom; on the playground; at the back of the library; after assembly; in the gymnasium
events: the bell rang twice; geography came before lunch; the chalk squeaked on the board; everybody wanted to go first;
the results were pinned to the door; term ended in July
people: judge lawyer witness constable clerk prisoner detective magistrate
things: verdict contract document clue statement cell footprint warrant letter alibi signature key
deeds: questioned disputed examined produced concealed discovered
places: before the court; at the station; in the witness box; on the courthouse steps; in the archive
events: the jury could not agree; the defence called nobody; the case was adjourned; a stranger confessed to everything;
the sentence surprised the public; silence fell upon the court
people: king queen soldier historian monk emperor merchant duchess
things: castle treaty crown manuscript coin sword monument palace map statue battle throne cannon
deeds: captured defended abandoned inherited restored buried
places: within the walls; at the border; in the ruined abbey; throughout the empire; across the moat
events: the siege dragged on for months; taxes doubled under the new regime; the army retreated south; a messenger
arrived with grave news; the kingdom split in two; peace was declared in spring
people: forester hunter botanist woodcutter painter camper naturalist wanderer
things: oak squirrel mushroom badger owl feather nest acorn path hawk antler beetle cabin fern
deeds: followed spotted identified sketched remembered startled
places: among the pines; at the edge of the clearing; beneath the old oak; deep in the valley; up the trail
events: an owl called from the darkness; the leaves had begun to fall; moss covered every stone; the stream vanished
underground; smoke rose from the campfire; the birds stopped singing
people: programmer engineer analyst inventor operator technician mathematician secretary
things: computer keyboard program printer network robot battery circuit password screen cable formula
deeds: installed updated examined unplugged replaced upgraded
places: in the laboratory; behind the server rack; on the top floor; over a slow connection
events: the screen flickered and went blank; the backup took nine hours; the calculation never finished; a fan whirred
softly; somebody had changed the password; two programs wanted the same file
"""

# What every subject shares.
_COMMON_TABLE = """
surnames: Archer Bishop Carter Dawson Ellis Foster Grant Hale Ingram Jarvis Keller Lambert Norton Osborne Palmer Young
first names: Alice Boris Clara Daniel Edith Felix Grace Henry Irene Jacob Laura Martin Nora Oliver Paula Rupert
titles: {Dr.|Doctor} {Mr.|Mister} {Mrs.|Missus} {Prof.|Professor} {Capt.|Captain} {Sgt.|Sergeant}
adjectives: ancient blue broken careful cheap clumsy crooked curious damaged dusty elegant empty enormous expensive
familiar famous flimsy forgotten fragile gigantic golden green grey handsome heavy hidden hollow huge narrow imported
interesting large little lonely magnificent mysterious new old ordinary painted peculiar plain precious pretty red
remarkable rusty second secret silent silver simple small splendid square stolen strange sturdy third tiny ugly valuable
vast wet white wooden yellow
tempers: absent-minded ambitious angry brave calm cautious cheerful clever eager elderly exhausted foreign friendly
generous gloomy grateful honest hungry impatient jealous kind lazy modest nervous patient polite proud puzzled quiet
retired shy sleepy stubborn tall thoughtful wealthy weary wise younger
adverbs: accidentally briefly carefully eagerly finally gently gladly hastily immediately kindly loudly nearly often
openly politely proudly quickly quietly rarely reluctantly secretly seldom silently slowly suddenly twice usually
times: after breakfast; before sunrise; during the holidays; every Thursday; for the first time; in late October; in
silence; in the afternoon; last Monday; on a cold February morning; once a fortnight; on Sunday evening; without delay;
with great difficulty; until well past midnight; for almost a year; at the end of the century; with both hands; all
summer; for no obvious reason; at {8:15|eight fifteen}; at {6:30|six thirty}; with a smile; on {Nov. 5|November fifth};
in a hurry; on {Jan. 3|January third}; within {24|twenty-four} hours; about {50|fifty} years ago
openers: Nobody remembers why; It is said that; As everyone knew,; According to the newspapers,; To our great relief,;
Strangely enough,; The letter mentioned that; I have always believed that; In those days,; By a happy coincidence,; My
grandmother told us that; Without a word of warning,; Much to the annoyance of the public,; The records show that; It
seems unlikely that; Far from home,; Thanks to good advice,; On the whole,; You may have heard that; There was a rumour
that; Perhaps it was only chance that; As a matter of fact,; Against all expectations,
joiners: , and; , but; , so; , yet; while; because; although; before; just as; even though; until; , and meanwhile
commands: find take bring buy sell keep draw fetch hide paint move watch count clean use follow show forget carry
amounts: several; two dozen; all the; both; some; at least ten; a few
questions: where is; who has; is that; why choose; whose is; have you seen; what about; did you bring; how old is
remarks: smiled waited laughed agreed refused vanished hesitated listened apologised slept shouted nodded wept returned
ones: zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
tens: twenty thirty forty fifty sixty seventy eighty ninety
"""


def _read_table(table: str) -> list[dict[str, list[str]]]:
    """Lists of a table by name; a name seen before opens the next group."""
    groups: list[dict[str, list[str]]] = [{}]
    for name, body in re.findall(r"^([a-z ]+): (.*?)(?=\n[a-z ]+: |\n*\Z)", table, re.DOTALL | re.MULTILINE):
        if name in groups[-1]:
            groups.append({})
        groups[-1][name] = re.split("; " if ";" in body else " ", body.replace("\n", " "))
    return groups


_SUBJECTS = _read_table(_SUBJECT_TABLE)
(_COMMON,) = _read_table(_COMMON_TABLE)


class English:
    """The English of `sentences`."""

    version = 1
    voice = "en-us"
    attempts = 20_000

    def compose(self, rng: random.Random, seconds: float) -> str:
        """A sentence with marked fragments that takes about that long to say."""
        return _compose(rng, seconds)

    def expected_seconds(self, text: str) -> float:
        """About how long the corpus's voice takes to say a normalised text."""
        return expected_seconds(text)


def expected_seconds(text: str) -> float:
    """About how long the corpus's voice takes to say a normalised text (fitted; 98% within a fifth)."""
    return 0.17 + 0.061 * len(text) + 0.32 * text.count(",")


def _compose(rng: random.Random, seconds: float) -> str:
    """A marked sentence of about that length."""
    speaker = _Speaker(rng)
    if seconds < 1.9:
        return speaker.short(seconds)
    text = f"{speaker.draw('openers')} " if seconds > 3 and rng.random() < 0.3 else ""
    text += speaker.clause()
    for _ in range(20):
        if expected_seconds(text) > seconds - 0.25:
            break
        piece, adjuncts = speaker.continuation()
        if expected_seconds(text + piece) < seconds + 0.6:
            text, speaker.adjuncts = text + piece, adjuncts
    return text + ("!" if rng.random() < 0.04 else ".")


class _Speaker:
    """Draws phrases of one subject; `adjuncts` names what the last clause may still take."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lists = {**_COMMON, **rng.choice(_SUBJECTS)}
        self.used: set[str] = set()
        self.adjuncts: list[str] = []

    def draw(self, name: str) -> str:
        """An item of a list, mostly one not drawn before."""
        item = self.rng.choice(self.lists[name])
        for _ in range(5):
            if item in self.used:
                item = self.rng.choice(self.lists[name])
        self.used.add(item)
        return item

    def one_of(self, words: str) -> str:
        return self.rng.choice(words.split())

    def short(self, seconds: float) -> str:
        """A command, question, exclamation or remark of a few words."""
        kind = self.rng.random()
        if seconds < 1 and kind < 0.4:
            return f"{self.draw('commands')} {self.one_of('it them this that mine hers')}."
        if seconds < 1:
            return f"{self.one_of('Ann Tom Ruth we they she nobody I')} {self.draw('remarks')}."
        noun = self.draw("things") if self.rng.random() < 0.5 else f"{self.draw('adjectives')} {self.draw('things')}"
        if kind < 0.35:
            return f"{self.draw('commands')} {self.one_of('the that my every this')} {noun}."
        if kind < 0.7:
            return f"{self.draw('questions')} {self.one_of('the your that their')} {noun}?"
        return f"{self.person()} {self.draw('remarks')}."

    def clause(self) -> str:
        """Somebody doing something to a thing, or one time in four an event."""
        if self.rng.random() < 0.25:
            self.adjuncts = []
            return self.draw("events")
        self.adjuncts = ["places", "times"]
        adverb = f"{self.draw('adverbs')} " if self.rng.random() < 0.3 else ""
        return f"{self.person()} {adverb}{self.draw('deeds')} {self.things()}"

    def continuation(self) -> tuple[str, list[str]]:
        """An adjunct or a further clause, and the adjuncts left after it."""
        before = self.adjuncts
        if before and self.rng.random() < 0.5:
            chosen = self.rng.randrange(len(before))
            return f" {self.draw(before[chosen])}", before[chosen + 1 :]
        joiner = self.draw("joiners")
        piece = f"{'' if joiner[0] == ',' else ' '}{joiner} {self.clause()}"
        self.adjuncts, after = before, self.adjuncts
        return piece, after

    def person(self) -> str:
        kind = self.rng.random()
        if kind < 0.1:
            return f"{self.draw('titles')} {self.draw('surnames')}"
        if kind < 0.2:
            return self.draw("first names")
        if kind < 0.5:
            return f"{self.one_of('the our every one')} {self.draw('tempers')} {self.draw('people')}"
        return f"{self.one_of('the the another my')} {self.draw('people')}"

    def things(self) -> str:
        thing, kind = self.draw("things"), self.rng.random()
        if kind < 0.25:
            plural = re.sub(r"(?<=[^aeiou])y$", "ie", re.sub(r"(s|x|ch|sh)$", r"\1e", thing)) + "s"
            count = self.rng.choice([self.rng.randrange(2, 100), 10 * self.rng.randrange(10, 100)])
            number = f"{{{count}|{number_words(count)}}}"
            return f"{number if kind < 0.12 else self.draw('amounts')} {plural}"
        if kind < 0.6:
            adjective = self.draw("adjectives")
            return f"{'an' if adjective[0] in 'aeiou' else 'a'} {adjective} {thing}"
        return f"{self.one_of('the the her their his my')} {thing}"


def number_words(number: int) -> str:
    """English for 0 to 999: 45 is "forty-five"."""
    ones, tens = _COMMON["ones"], _COMMON["tens"]
    if number < 20:
        return ones[number]
    if number < 100:
        return tens[number // 10 - 2] + (f"-{ones[number % 10]}" if number % 10 else "")
    rest = f" {number_words(number % 100)}" if number % 100 else ""
    return f"{ones[number // 100]} hundred{rest}"
