"""Finding the user's standing instructions: what is to hold from now on, not once. By rule, in English and Chinese.

A sentence is one when a rule of its language fires and nothing speaks against it: a question, reported or quoted speech, a
story about someone else, or (for rules that also fit a single request) a sign that only this once is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from turnfold.core.text.scripts import HAN
from turnfold.core.text.sentences import MAX_SENTENCE, sentences
from turnfold.messages.model import Message

_HAN = re.compile(f"[{HAN}]")
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"]*\"|'(?<!\w')[^']*'(?!\w)|`[^`]*`")
_BULLET = re.compile(r"\s*(?:[-*•·>]|\d{1,2}[.)、]|[（(]\d{1,2}[)）])\s*")


def standing_instructions(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the standing instructions in what the user said, verbatim, oldest first, repetitions included."""
    return tuple(
        sentence
        for message in messages
        if message.role == "user" and message.kind == "message"
        for sentence in _prose(message.text)
        if is_standing_instruction(sentence)
    )


def is_standing_instruction(sentence: str) -> bool:
    """Return whether a sentence that the user said is to hold for more than the moment."""
    if not 4 <= len(sentence) <= MAX_SENTENCE:
        return False
    bare = _QUOTED.sub("“”", _without(_BULLET, sentence)).strip()
    rules = _EN if bare.isascii() or not _HAN.search(bare) else _ZH
    return rules.hold(bare)


def _prose(text: str) -> Iterator[str]:
    """Sentences outside code, logs, quotations and stage directions, without their bullets."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not _NOT_SAID.match(line):
            for spoken in _ACTED.split(line) if _ACTS.search(line) else (line,):
                yield from (_without(_BULLET, sentence) for sentence in sentences(spoken))


def _without(beginning: re.Pattern[str], text: str) -> str:
    """Return the text without what the pattern matches at its beginning."""
    match = beginning.match(text)
    return text[match.end() :] if match else text


_NOT_SAID = re.compile(
    r"\s*(?:>|//|/\*|#\s*(?:[a-z]|[^\x00-\x7f])|(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE|[Ee]rror|[Ww]arning|错误|警告|提示|报错)\s*[:：])"
)
"""How lines of quotations, comments and logs begin."""
_ACTED = re.compile(r"\*(?=[^*\n]{1,300} )[^\s*][^*\n]{1,300}\*|^\s*[（(][^）)\n]{2,60}[）)]")
"""What a role does, between the things it says."""
_ACTS = re.compile(r"[*（(]")


class _Rules:
    """`lasting` fires whatever else is said, `usual` only without a sign of `once` in the sentence or of `this` thing in its
    clause; `against` and a question veto both. `starts` (where given) are the words that a clause must begin with.
    """

    def __init__(
        self,
        *,
        lasting: str,
        usual: str,
        once: str,
        this: str,
        against: str,
        lead: str,
        starts: frozenset[str] = frozenset(),
    ) -> None:
        flags = re.VERBOSE | re.IGNORECASE
        self._starts = starts
        self._lasting = re.compile(lasting, flags)
        self._usual = re.compile(usual, flags)
        self._once = re.compile(once, flags)
        self._this = re.compile(this, flags)
        self._against = re.compile(against, flags)
        self._lead = re.compile(lead, flags)

    def hold(self, sentence: str) -> bool:
        orders = [kind for clause in self._clauses(sentence) if (kind := self._fires(clause))]
        asked = sentence.rstrip("”\"')）").endswith(("?", "？"))
        if not orders or (asked and not _ASKED_FOR_GOOD.match(sentence)):
            return False
        if not asked and self._against.search(sentence):
            return False
        return "lasting" in orders or self._once.search(sentence) is None

    def _fires(self, clause: str) -> str | None:
        if self._lasting.match(clause):
            return "lasting"
        if not self._usual.match(clause):
            return None
        end = _PART_END.search(clause)
        return None if self._this.search(clause, 0, end.start() if end else len(clause)) else "usual"

    def _clauses(self, sentence: str) -> Iterator[str]:
        """The places where an order can begin: the sentence, and each clause of it, without polite beginnings."""
        for start in (0, *[match.end() for match in _CLAUSE_END.finditer(sentence)]):
            clause = sentence[start:].lstrip()
            if not self._starts:
                yield _without(self._lead, clause)
                continue
            word = _first_word(clause)
            if word in _LEAD_WORDS:
                clause = _without(self._lead, clause)
                word = _first_word(clause)
            if word in self._starts or " must " in clause:
                yield clause


def _first_word(clause: str) -> str:
    return clause.partition(" ")[0].rstrip(",.:;!?").lower().replace("’", "'")


_PART_END = re.compile(r"[,;，；。]")
_ASKED_FOR_GOOD = re.compile(
    r"(?:(?:please|and|so|ok(?:ay)?)[,\s]+)*(?:can|could|would|will)\s(?:you|we)\s(?:please\s)?(?:(?:always|never|only|stop)\b|.*\bfrom\s(?:now|here)\son\b)",
    re.IGNORECASE,
)
"""A question only by its form."""
_CLAUSE_END = re.compile(
    r"[\s,;:，；：、.!?。！](?:(?<=[,;:，；：、])\s*|(?<=[.!?。！])\s+|(?<=\s)(?:[-–—]+|so|and|but|then)\s)"
)

_VERB_WORDS = """
use write answer reply respond speak talk refer address keep stay remain format log cite sign name spell prefer stick limit treat call
phrase explain summarise summarize structure start begin end close finish put give make be act play leave include assume ask check
double-check quote translate describe document indent round show run test push pull commit merge rebase rename delete remove drop
mention tell let add tag tick open send email e-mail suggest recommend offer reveal expose share touch change edit modify move copy
create install import deploy release publish read follow respect avoid skip pick choose set print return output report warn confirm
verify validate wait remind review update upgrade store save back escape pin mock stub hardcode hard-code guess invent interrupt judge
correct repeat apologise apologize thank greet lie rush trust generate produce provide prefix capitalise capitalize abbreviate convert
express list number order sort label link break speculate promise book buy cook schedule plan assign reopen squash force-push amend bump
lint type annotate comment catch raise swallow ignore disable enable execute invoke query select join truncate alter migrate seed mask
redact encrypt hash trim wrap cut omit shorten expand refuse decline contact ping
"""
"""What an assistant can be told to do. Before an unlisted word a rule needs a stronger sign."""
_VERBS = f"(?:{'|'.join(_VERB_WORDS.split())})"
_LEAD_WORDS = frozenset(
    [
        "please",
        "also",
        "ok",
        "okay",
        "oh",
        "so",
        "and",
        "but",
        "then",
        "well",
        "just",
        "again",
        "important",
        "note",
        "rule",
        "one",
        "btw",
        "kindly",
        "hey",
        "hi",
        "thanks",
        "listen",
        "first",
        "second",
        "finally",
        "plus",
        "hm",
        "hmm",
    ]
)
_OTHER_STARTS = """
from henceforth hereafter starting going moving in for you you're your always never under on at do don't dont whenever every each any
anytime when if within throughout bear i i'd as by without no zero all it's it can could would will nothing nobody before after we quit
refrain only just short shorter brief concise longer formal plain simple stick act pretend behave use stop remember
"""
_STARTS = frozenset((*_VERB_WORDS.split(), *_OTHER_STARTS.split()))
"""No rule fires on a clause that begins with another word, but those about what something "must" do."""
_OBJECT = r"(?:the|a|an|any|my|your|our|all|me|us|it|this|that|these|those|more|two|too|anything|anyone|in|on|to|with|without|before|after|for|real|new)\b"
_NO_ORDER = (
    r"(?!(?:is|was|were|are|am|been|had|has|have|a|an|the|my|your|again|mind|ever|even|in|on|at|to|up|by|so|here|there|more|happened|seen|saw|liked|knew|known|said|heard|tried|good|great"
    r"|nice|happy|fun|love|enjoy|rooting|forget|quit|give\sup|admired|running|full|bringing|know|thought|think|did|does|do\b|came|went|got|met|found|felt|too|not|say\snever)\b)(?!\w+(?:ed|ing)\b)"
)
_BASE = rf"(?:{_VERBS}\b|{_NO_ORDER}[a-z]+\s{_OBJECT})"
"""A verb's base form, as in an order."""
_NOT_A_SUBJECT = r"(?!(?:it|it's|its|he|he's|she|she's|they|they're|we'll|i'll|i|i'm|there|there's|this|that|that's|these|those|his|her|their|nobody|people|things|life)\b)"
_GENERAL = (
    r"\b(?:only|every|each|everything|any|anything|always|never|at\sall\stimes|throughout|in\sgeneral|by\sdefault|as\sa\srule|no\smatter|regardless"
    r"|exceptions?|unless|whenever|everywhere|everyone|all\sthe\stime|at\sall|ever|per\sdefault|without\sexception|in\syour\s(?:replies|answers|responses|messages)"
    r"|from\s(?:now|here|today)\son|until\si\s(?:say|tell)|all\s(?:\w+\s){0,2}(?:mails?|e-mails|replies|answers|messages|texts|commits?|files?|logs?|tests|code|names|dates|drawings|responses|functions)"
    r"|for\sgood|going\sforward|instead\sof|and\snot|rather\sthan)\b"
)
_CONDUCT = (
    r"(?:use|write|answer|reply|respond|speak|talk|refer|address|keep|stay|remain|format|log|cite|sign|name|spell|prefer|stick|limit|treat|call|phrase|explain"
    r"|summari[sz]e|structure|start|begin|end|close|finish|put|give|make|be|act|play|leave|include|assume|ask|check|double-check|quote|translate|describe|document|indent"
    r"|round|show|tag|tick|mention|add|run|test|suggest|recommend|format|commit|tell|print|read|review|confirm|verify|send|avoid|express|convert)"
)
_LASTS = (
    r"(?:from\s(?:now|here|this\spoint|today|this\smoment)\s(?:on(?:wards?|\sout)?|onwards?|forward)|from\snow(?=,)|henceforth|hereafter|starting\s(?:now|today|from\snow)"
    r"|(?:going|moving)\sforward(?!\sby)|in\s(?:the\s)?future(?=,|\splease)|for\sthe\srest\sof\s(?:this|our|the)\s[\w-]+|for\sgood)"
)
_OFFER = r"(?!.*\b(?:let\sme\sknow|feel\sfree|reach\sout|contact\sme|i'm\shere|here\sfor\syou|give\sme\sa\s(?:shout|call|ring)|hit\sme\sup)\b)"
_DIRECTED = rf"(?:please\b|(?:always|never|only|just|first|simply)\s|don't\b|do\snot\b|(?!let\b|give\sit|call\sme\b|check\sout){_VERBS}\b|you\s(?:must|should|have|need|are|may|can|answer|speak|reply|use)\b|then\s{_CONDUCT}\b)"

_EN = _Rules(
    starts=_STARTS,
    lead=r"(?:(?:please|also|ok(?:ay)?|oh|so|and|but|then|well|just|again|important|note|rule|one\s(?:more\s)?thing|btw|kindly|hey|hi|thanks|listen|first|second|finally|plus|hmm?)[,:.]?\s+)+",
    lasting=rf"""
        {_LASTS}(?:,\s*|\s+){_NOT_A_SUBJECT}\S
        |(?:in|for)\s(?:all\s(?:your\s)?(?:future|your)\b|(?:all|every|any|each)\s(?:\w+\s){{0,3}}(?=(?:please|you\s(?:write|give|send|make|add|create|touch|change|commit|open|use)\b)))(?:\s?\w+){{0,3}}?,?\s(?:please\s)?{_NOT_A_SUBJECT}(?!\w+\sthey\b){_CONDUCT}\b
        |(?:(?:you\s(?:must|should|need\sto|have\sto|are\sto|shall|will|can|may|ought\sto)\s)?(?:always|never(?:\sever)?)|make\ssure\s(?:to|that\syou|you)\s(?:always|never)|(?:be\ssure|remember|try)\sto\s(?:always|never))\s{_BASE}
        |you\s(?:always|never)\s(?:speak|answer|reply|respond|mention|refer|break|write|talk|call\sme|use)\b
        |you\s(?:must|should|may|can|shall)\s(?:not\sever|never|only|under\sno)\b
        |(?:under\s(?:no|any)\scircumstances?|on\sno\saccount|at\sno\s(?:point|time)|in\sno\scase)(?:,|\splease|\s(?:should|must|may|are|do|can|shall|will|delete|use|{_VERBS})\b)
        |(?:do\snot|don't|dont)\s(?:you\s)?ever\s(?!quit\son|give\sup|forget|change\b|stop\sbeing|lose|let\sanyone)
        |(?:do\snot|don't)(?:,\s|\s)under\sany\scircumstances
        |(?:stay|remain|keep)\sin\scharacter\b|never\s(?:break|leave|drop)\scharacter
        |(?:whenever|every\stime|each\stime|any\s?time|when|if)\s(?:you|i\s(?:say|ask|write|type|send|mention|tell|give|paste|call|use|want|need)|we\s(?:talk|speak|discuss|write|use))\b{_OFFER}[^,]*,\s(?:then\s)?{_DIRECTED}(?!.*\b(?:crashes|fails|happens)\b)
        |when\s(?:writing|citing|naming|quoting|reviewing|testing|coding|translating|you're|answering|replying|planning)\b[^,]*,\s{_DIRECTED}
        |(?:in|for|within|throughout|on)\s(?:this|our|the\sentire|the\swhole)\s(?:project|repo(?:sitory)?|codebase|team|story|conversation|chat|game|campaign|thread|book|document|world|novel|roleplay)\b.*\b(?:only|always|never|must|every|each|all|no|not|don't|do\snot|have\sto|has\sto)\b
        |keep\sin\smind\s(?:that\s)?(?:i|my|we|our|you)\b|bear\sin\smind\b|remember(?:\sthat|:|,)\s(?:i\b(?!'m\salways|\swill|'ll)|my\b|we\b(?!'re\sin)|our\b|never\b|always\b|no\b|you\s(?:must|are|never|only)\b|the\b(?=.*\b(?:never|always|must)\b))(?!.*\bhere\s(?:for|if|to)\b)
        |(?:i(?:'d|\swould)?\s(?:rather|prefer|like|love|appreciate))\s(?:you\s(?:to\salways|never|always|not\s)|(?:for\s)?you\sto\s(?:always|never|only)|it\sif\syou\s(?:always|never|only|could\salways)|to\sbe\s(?:called|addressed|spoken|told|asked|named|kept))
        |i(?:'d|\swould)\s(?:like|prefer|love)\sthat\syou\b|(?:i\s(?:want|need|expect|require)|i(?:'d|\swould)\s(?:like|prefer))\s(?:every|each|all\s(?:your|of\syour|the)?|any|your)\b.*\b(?:to|in|with)\b
        |i\s(?:want|need|expect|would\slike|'d\slike)\syou\sto\b(?=.*(?:{_GENERAL}))|i\s(?:don't|do\snot|never)\swant\s(?:you\sto|to\ssee\s(?:any|another)|any)\b
        |(?:as\sa\s(?:general\s)?rule|by\sdefault|at\sall\stimes|in\sgeneral|without\sexception)(?!\sof)[,:]?\s{_NOT_A_SUBJECT}(?!(?:a|an|the)\b)
        |(?:no|zero)\s(?!one\b|idea|wonder|matter|doubt|way\b|thanks|problem|prob\b|worr|need\b|longer|sooner|running).*(?:,?\splease\b|\bin\sany\b|\bin\syour\b|\bat\sall\b|\bever\b|\ballowed\b|\bunless\b)(?!.*\b(?:was|were|came|did|had|has)\b)
        |(?:all|every|each|any)\s(?!of\b)(?:[\w-]+\s){{1,7}}?(?:must|should|has\sto|have\sto|needs?\sto|is\sto|are\sto|shall|may\snot|cannot|can't)\s(?!have\s(?:been|gone|had|come|\w+ed)\b|be\s(?:a\sbug|here|fine))
        |(?:the\s|your\s|my\s|our\s)?(?:[\w-]+\s){{1,6}}?must\s(?:always|never|not)\s(?!have|be\s(?:easy|the|in\b))
        |you\s(?:are|'re)\s(?:not\sallowed|forbidden|only\sallowed|never\sallowed|never\sto)\b
        |it(?:'s|\sis)\s(?:important|essential|crucial)\s(?:that\syou\s|to\s)(?:always|never)|be\scareful\s(?:never|not)\sto\b|make\sit\sa\s(?:habit|rule)\b
        |(?:can|could|would|will)\syou\s(?:please\s)?(?:always|never|only|(?=.*\bfrom\s(?:now|here)\son\b))|i(?:'d|\swould)\s(?:rather|appreciate\sit\sif)\syou\s(?:didn't|did\snot|wouldn't|always|never|only)
        |(?:nothing|nobody|no\sone)\s(?:\w+\s){{1,6}}without\smy\b|(?:don't|do\snot)\syou\s(?:dare|ever)\b
        |(?:all|every|each)\s(?!of\b)(?:[\w-]+\s){{1,4}}?(?:(?:starts?|begins?|ends?)\swith|go(?:es)?\s(?:in|into|to|through)|gets?\sa|needs?\sa|uses?|stays?)\b
        |your\s(?:\w+\s){{0,2}}(?:replies|answers|responses|messages|summaries|code|tests|commits?|sentences)\s(?:must|should|have\sto|need\sto|are\sto|may\snot)\b
        |(?:before|after)\s(?:you\b|each\b|every\b|any\b|all\b)[^,]*,\s(?:please\s|always\s)?(?!let\b){_VERBS}\b
        |you\s(?:only\s)?(?:speak|answer|reply|respond|write|talk)\s(?:only\s)?in\s\w+|you(?:'re|\sare)\sto\s{_VERBS}\b|you\s(?:are|'re)\sonly\sto\b
        """,
    usual=rf"""
        (?:do\snot|don't|dont|do\snever)\s(?!(?:worry|forget|get\sme|tell\sme|you|bother|panic|cry|go\sgentle|mind|mention\sit|hesitate|sweat|take\sit|know|think|like|have|want|need|see|understand
            |believe|care|feel|even|be\b|give\sup|hold|blame|laugh|look|thank|lose|miss|spoil\sit|wait|let\s(?:me|it|them|him|her)|move|shoot|leave|rush|stress|limit\syourself|push\syourself|disturb|get|remember|do\s(?:it|that)\sagain|quit
            |make\sme|give\sme|put\stoo|overthink|underestimate|beat\syourself|compare|say\sthat|stay\stoo|always)\b){_NO_ORDER}[a-z][a-z-]*\b(?!.*\b(?:yourself|your\s(?:dreams?|heart|passion))\b)
        |stop\s\w+ing\b|quit\s\w+ing\b|refrain\sfrom\b|avoid\s(?!it\b|him\b|her\b|them\b)\w+
        |{_CONDUCT}\b(?!\sit\sup|\sup\sthe|\sgoing|\sfun|\spushing|\sworking)(?=.*(?:{_GENERAL}))(?!.*\?)
        |call\sme\s(?!(?:later|back|when|if|tomorrow|tonight|at\b|on\b|crazy|maybe)\b)(?:[a-z]|“)|address\sme\s(?:as|by|with)\b|(?:speak|talk|write|reply|respond|answer)(?:\s(?:to\s)?me)?\s(?:only\s)?(?:in|like|as|with)\s(?!this\b|that\b|your\sown\btime)
        |keep\s(?:your|the|all|every|each|it|things|answers|replies|responses|messages|functions|sentences|paragraphs)\b(?!\s(?:change|faith|good|hard|great|up)\b).*\b(?:short|brief|concise|simple|formal|informal|warm|polite|under|below|within|small|clean|tone|plain|friendly)\b
        |remember\sto\s{_VERBS}\b(?!.*\byourself\b)|make\ssure\s(?:to|that|you|every|all|each|no)\b(?=.*(?:{_GENERAL}|\ball\b))
        |i\sprefer\b(?=.*\b(?:please|over|instead\sof|rather\sthan)\b.*(?:\bplease\b|\bso\b|code|write|answer|repl|use))
        |you\s(?:must|may|shall|can)\s(?:not|only|never)\b|you\smust\s(?!be|have)\w+(?=.*(?:{_GENERAL}))
        |(?:only|just)\s(?:ever\s)?(?:use|write|answer|reply|respond|speak|talk|show|give|send|include|output|return|print|commit|suggest|recommend)\b(?!\sthis\b|\sone\b)
        |(?:you(?:'re|\sare)\s(?:now\s)?(?:to|my|a|an|the|called|[A-Z])\b).*\b(?:you\s(?:never|always|only|must|speak|do\snot|don't))\b
        |(?:we|i)\s(?:only|always|never)\s(?:use|write|commit|deploy|format|log|name|ship|push|merge)\b(?=.*\b(?:so|please|you)\b)
        |(?:short|shorter|brief|concise|longer|formal|plain|simple)\s(?:\w+\s)?(?:answers|replies|sentences|responses|messages)\b.*\bplease\b
        |no\smore\s\w+(?:\s\w+){{0,3}}[.!]?$|no\s(?:spoilers?|emojis?|jokes|puns|bullet\spoints|small\stalk|exclamation\smarks|lists|code\sblocks|abbreviations|acronyms|jargon|swearing|markdown|disclaimers)\b
        |stick\s(?:to|with)\s(?!it\b|me\b|us\b|you\b)\w+|limit\s(?:your|all|each|yourself\sto)\b|be\s(?:more\s|very\s)?(?:brief|concise|blunt|direct|terse|polite|formal|specific|strict|critical|precise)\b
        |(?:act|pretend|behave)\s(?:as|like|to\sbe|that\syou)\s|play\sthe\s(?:role|part)\b
        |use\s(?!the\b|this\b|that\b|my\b|it\b|a\b)\S+(?:\s\S+)?\s(?:for|in|when|with)\s(?:all\s)?(?:\w+s|me|everything|code)\b
        |(?:use|write|prefer|choose|pick)\s\S+(?:\s\S+){{0,4}}?(?:\s(?:instead\sof|rather\sthan|over|and\snot)|,?\snot)\s
        """,
    once=r"""\b(?:yet|right\snow|for\snow|just\snow|(?<!from\s)now|(?<!from\s)today|tonight|this\stime|this\sonce|just\sonce|once\smore|tomorrow|while\si|before\si(?:'ve|\shave)?\s(?!say)
        |until\s(?:\w+\sis|i\s(?:am|get|come|look))|for\sa\s(?:moment|second|minute)|in\smy\slast|again,\sbut|my\slast|the\slast\s(?:question|one|message)|when\syou\smake\sthe|anymore)\b
        |^\W*\w+(?:\W+\w+){0,2}\s(?:it|this|that|them|these|those)\s*(?:[,.!]|$)""",
    this=r"\b(?:(?:this|that)\sone|these\stwo|for\sthis\s(?:test|slide|one|file|line|run|flight))\b",
    against=r"""\b(?:said|says|told|whispered|muttered|replied|declared|swore|vowed|announced|shouted|yelled|sang|according\sto|the\ssign|the\smanual|used\sto|wrote|reads|begged|explained|warned|insisted|promised
        |states\sthat|stated|contract|favou?rite\s(?:poem|song|line|movie)|(?:she|he)\s(?:thought|asked|cried))\b
        |\b(?:he|she|they|it)\s(?:always|never)\b|^(?:\w+:\s)?(?:\w+,\s)?(?:they|he|she|it)(?:'re|'s|\s\w+)\b.*\b(?:and|but)\s(?:always|never)\b|^(?:could|can|would|will|should|do|does|did|is|are|was|were|have|has|why|what|how|when\sdo|where|who|which|must|may|shall)\s(?:i|you|we|he|she|it|they|the|a|this|that|there|my|your|every)\b(?!.*\bplease\b.*\bnever\b)
        |^(?:i|we)(?:'ve|'ll|\shave|\swill|\swas|\swere|\scan't|\scannot|\sdon't\s(?!want\syou)|\sdo\snot\s(?!want\syou)|\sdidn't)\b(?!.*,\s*(?:so\s)?(?:please|from\snow|always|never|don't|do\snot)\b)|^let's\b|\bmust\salways\shave\b""",
)

_ONCE_ZH = r"先(?:别|不要|不(?!要)|帮|看|停)|这次|这一次|这回|暂时|现在(?!起|开始)|今天(?!起|开始)|今晚|明天|等我|等\w{1,6}回来|看一眼|刚才|马上|一会儿?|上一|最后一"
_THIS_ZH = r"这(?:个|条|段|句|张|份|只|台|把)(?!项目|角色|仓库|故事|对话|群|游戏|词|字|世界)|那(?:个|条|段|句|张|份|只|台|把|扇)"
_ORDER_ZH = r"(?:请|都[要得按用先给是不以只必]|要[用先有写带把按以加]|不要|别|不能|不许|不准|禁止|必须|务必|一律|统一|只[用写说给能准许回]|先|每次|凡是|记得|默认|按照?|尽量|用\w|叫我|你[要叫是得都说就只不别必]|说话|回答|回复|称呼|始终|保留|附上|列成|加上|写成|全部|全都)"

_ZH = _Rules(
    lead=r"^(?:(?:请你?|麻烦你?|拜托|那么?|好的?|所以|另外|还有|对了|然后|而且|但是?|不过|注意|重要|规则|规矩|提醒一下|说一下|听好|首先|其次|最后|再说一遍|再强调一遍)[，：,:\s]*)+|^你(?=[必一始永不别只要])",
    lasting=rf"""
        (?:以后|今后|往后|日后|之后|从现在(?:起|开始)|从今(?:天|以后|往后|儿)?(?:起|开始|以后|往后)?|从这(?:里|一刻|以后)(?:起|开始)?|从此(?:以后)?|下次(?:开始|起|再?(?=别|不要|请|记得|务必|要先|先))|此后|后面|接下来)(?:，|,|：|\s)*(?!会|有机会|再说|再看|还[有没剩]|谁|怎|算|你(?:就|会|才)?(?:会)?(?:知道|明白|懂|后悔|习惯)|的事)(?=.*{_ORDER_ZH})
        |(?:永远|任何时候|任何情况下?|无论如何|不管\w{{1,10}}|绝对|绝|千万|一定|一概|坚决|始终|一直)(?:，|都|也|你)*(?:不要|不能|不许|不准|不得|别|禁止|不可以?|要(?!走)|必须|记得|得先)
        |(?:始终|一直|全程|永远)(?:要|用|以|保持|站|按|使用|说|当|扮演|称|叫|把|给|坚持)
        |(?:记住|牢记|记好|记清楚|谨记|记着)(?!了|的|我的名字)(?:[，：:\s]|这个项目|我|你|以后|每|不|别|要|所有|一)
        |(?:务必|切记|切勿|请勿|严禁|禁止|不许|不准|不得|勿|谢绝)(?!两个字|[二两]字|笑|哭|动[，。！]|词)[^，。]
        |(?:每次|每回|每当|每一次|每个|每一|每条|每份|每章|凡是?|所有|一切|任何|全部|只要是?)[^，。；]{{0,24}}?(?:，|,|\s)*(?:你|就|都|也)*(?:都?要|都得|都?必须|都?先|必须|一律|统一|记得|请|不要|别|务必|都用|都按|都写|都加|都给|禁止|不能|不得|不许|都不能)
        |(?:只要|如果|当|要是)我(?:说|喊|问|发|提到|打出|输入|用)[^。]{{0,20}}(?:你就|就|请|你要|你)
        |(?:(?!.{{0,8}}[他她它]|我们|大家|人们|咱们?|新生)[^，。]{{1,16}})?(?<!他)(?<!她)(?:一律|统一(?=用|按|写|使用|采用|以|改|叫|加|放|为)|一概)(?!没|八|七|六|五|九)
        |(?:[^，。我他她]{{1,16}})?(?:都|均|全部|一定|全都)必须|(?:[^，。我他她它你您]{{2,14}})(?:一定要|务必|都要|都得|得先|要先|每次都)(?![去来走看]|是|有|吗|了)[^，。]|在?(?:这个|本)?(?:故事|世界|项目|游戏|剧本|对话|仓库|副本|城)(?:里|中|内|上)[，,]?[^，。]{{0,8}}?(?:始终|永远|一直|只|都|全部)?(?:不能|不许|不准|不要|只能|只准|必须)|(?:没有|没|未经|没经过)我(?:的)?(?:同意|允许|许可|确认|点头|批准)(?=.*(?:不|别|禁止))|[^，。我他她它昨]{{1,10}}(?:完|好|后|之后|以后)(?:，)?(?:一定|都|记得|务必|必须)(?:要|得)?(?!了)[^，。]|你只(?:负责|能|准|许|管)|(?:我)(?:说|喊|发|打)[^，。]{{0,12}}(?:时|的时候|之后|后)[，,]?(?:你|请|就)|(?:从不|绝不|决不)(?=要|能|可|许)
        |(?:叫我|称呼我|喊我|管我叫)(?!怎|如何|说|情何|别|滚|等|明|快|起床|去|来|做|干|的|了)
        """,
    usual=r"""
        (?:再也)?(?:不要|别再?|不可以|甭|不用(?=每次|再|总是|老是))(?!紧|脸|命|看我|以为|说[，,]|提了|处|的|样|致|出心裁|钱|担心|急|说了|看他|看她|的|人|家|墅|处|跟我说|忘了|怕|慌|难过|生气|哭|走|闹|理他|管[它他]|客气|介意|见怪|笑|误会|着急|灰心|动[，。！]|想太多|逗)[^，。？]
        |[^，。我他她它]{2,14}(?:的时候|时|之前|之后|里|中|方面|上)(?:，|,)?(?:请|也|就|都|你)?(?:不要|别|必须|务必|只能|只用|要用|要先|要有|要带|请用|不能|记得|统一|少[写用说给提](?!了)|多[写用说给](?!了)|尽量|避免|优先|一定要|得先)
        |[^，。我他她昨]{1,16}(?:必须|不得|不准|不许|严禁)(?!的)[^，。]|必须(?!的|得走|承认)[^，。]
        |(?:语气|口吻|口气|文风|风格|说话|回答|回复|答案|措辞|称呼|标题|注释|格式|排版|例子|代码|日期|金额|时间)(?:\w{0,4})?(?:控制在|限制在|限|不超过|要|得|尽量|保持|请|用|统一|别|不要|必须|只)(?!了)
        |(?:只|仅)(?:用|准|许|能用|写|回答|给|输出|说|讲|看|使用|允许|限)(?!了|要|需要)
        |(?:我)?(?:希望|想要?|要求|更?喜欢|需要|建议|宁愿|偏好)你(?!能考|快乐|幸福|好起来|帮我|给我|写|来|去|告诉)
        |(?:跟|和|对)我(?:说话|聊天|讲话|交流|汇报|解释)(?:的时候|时)?(?:，)?(?:要|别|不要|用|请|尽量|随便|直接|先)|[^，。]{0,8}保留[一二两三四五六七八九十\d]+位小数|[^，。我他她]{1,10}(?:写成|写为|用|按)[^，。]{1,14}(?:格式|形式|写法)(?:来?写|输出|给我)?$|称我为|(?:简短|简洁|直接|正式|随便|口语化?|幽默|温柔|客气|详细|具体)(?:一点|一些|点|些)儿?[。！吧]?$|(?:少|多)(?:写|说|给|提|举)(?!了|过)[^，。]{2,}|(?:尽量|尽可能|优先|默认|避免|少用|多用|保持)(?:用|使用|说|写|给|按|不|少|别|把|以|简|短|出现)?\S
        |(?:注意|记得)(?:不要|别|每|以后|要|所有|一律|我)
        |用(?:中文|英文|简体|繁体|敬语|大白话|口语|第一人称|第二人称)\S*(?:回答|回复|说|写|交流|对话|跟我)
        |我(?:对|不吃|不喝|不能吃|吃素)\S*(?:过敏|所以|别|不要|推荐|给我)
        """,
    once=_ONCE_ZH,
    this=_THIS_ZH,
    against=r"""(?<![别要我你没话])说(?:过|道)?(?:[，。：:“]|$)|[他她们板父师妈爸爷奶生员士卫王者人册]说(?!话)|[，,”][他她它][^，。]{0,6}(?:说|想|道|喊|笑|问)|写明|告诫|^(?:合同|规定|法律|条例|书上|网上)|写着|写道|里写[：:]|喊道|唱|下令|发誓|规定|低声|牌子|据说|觉得|认为|可是|却|结果大家
        |为什么|是不是|有没有|能不能|会不会|要不要(?!再动手)|哪里|谁也|吗$|呢$|^(?:我|他|她|它|他们|我们)(?:们)?(?:以后|必须|不要|从来|从不|总是|一直|永远|每次|已经|刚)|(?<!不)(?<!别再给我讲大道理)极了|烦死|乐坏|太\w{1,4}了吧|白跑
        |(?:昨天|上周|去年|小时候|曾经|当时|那天)""",
)
