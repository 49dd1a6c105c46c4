"""Finding the user's standing instructions: what is to hold from now on, not once. By rule, in English and Chinese.

A sentence is one when a rule of its language fires and nothing speaks against it: a question, reported or quoted speech, a
story about someone else, or (for rules that also fit a single request) a sign that only this once is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from turnfold.core.text.scripts import HAN
from turnfold.core.text.sentences import MAX_SENTENCE, sentences
from turnfold.messages.model import Message

_HAN = re.compile(f"[{HAN}]")
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_BULLET = re.compile(r"^\s*(?:[-*•·>]|\d{1,2}[.)、]|[（(]\d{1,2}[)）])\s*")


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
    plain = _BULLET.sub("", sentence)
    bare = _QUOTED.sub("“”", plain).strip()
    rules = _ZH if _HAN.search(bare) else _EN
    return rules.hold(bare)


def _prose(text: str) -> Iterator[str]:
    """Sentences outside code fences and quotations, without their bullets."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            yield from (_BULLET.sub("", sentence) for sentence in sentences(line))


class _Rules:
    """`lasting` fires whatever else is said, `usual` only without a sign of `once`; `against` and `question` veto both."""

    def __init__(self, *, lasting: str, usual: str, once: str, against: str, lead: str) -> None:
        flags = re.VERBOSE | re.IGNORECASE
        self._lasting = re.compile(lasting, flags)
        self._usual = re.compile(usual, flags)
        self._once = re.compile(once, flags)
        self._against = re.compile(against, flags)
        self._lead = re.compile(lead, flags)

    def hold(self, sentence: str) -> bool:
        lasting, usual = self._lasting.match, self._usual.match
        orders = [kind for clause in self._clauses(sentence) if (kind := _fires(lasting, usual, clause))]
        if not orders or sentence.rstrip("”\"')）").endswith(("?", "？")) or self._against.search(sentence):
            return False
        return "lasting" in orders or self._once.search(sentence) is None

    def _clauses(self, sentence: str) -> Iterator[str]:
        """The places where an order can begin: the sentence, and each clause of it, without polite beginnings."""
        for start in (0, *(match.end() for match in _CLAUSE_END.finditer(sentence))):
            yield self._lead.sub("", sentence[start:].lstrip(), count=1)


def _fires(lasting: _Match, usual: _Match, clause: str) -> str | None:
    return "lasting" if lasting(clause) else "usual" if usual(clause) else None


_Match: TypeAlias = Callable[[str], "re.Match[str] | None"]
_CLAUSE_END = re.compile(
    r"[\s,;:，；：、.!?。！](?:(?<=[,;:，；：、])\s*|(?<=[.!?。！])\s+|(?<=\s)(?:[-–—]+|so|and|but|then)\s)"
)

_BASE = r"(?!(?:is|was|were|are|am|been|had|has|a|an|the|again|mind|ever|in|on|at|to|more|happened|seen|liked|knew|said)\b)[a-z]+\b"
"""A word that can be a verb's base form, as in an order."""
_NOT_A_SUBJECT = r"(?!(?:it|its|he|she|they|we'll|i'll|i|there|this|that|these|those|his|her|their|nobody|people)\b)"
_GENERAL = (
    r"\b(?:only|every|each|everything|any|anything|always|never|at\sall\stimes|throughout|in\sgeneral|by\sdefault|as\sa\srule|no\smatter|regardless"
    r"|exceptions?|unless|whenever|everywhere|everyone|all\sthe\stime|at\sall|ever|per\sdefault|without\sexception|in\syour\s(?:replies|answers|responses|messages))\b"
)
_CONDUCT = (
    r"(?:use|write|answer|reply|respond|speak|talk|refer|address|keep|stay|remain|format|log|cite|sign|name|spell|prefer|stick|limit|treat|call|phrase|explain"
    r"|summarize|structure|start|begin|end|close|finish|put|give|make|be|act|play|leave|include|assume|ask|check|quote|translate|describe|document|indent|round)"
)

_EN = _Rules(
    lead=r"^(?:(?:please|also|ok(?:ay)?|oh|so|and|but|then|well|just|again|important|note|rule|one\sthing|btw|kindly|hey|hi|thanks|listen|first|second|finally|plus)[,:]?\s+)+",
    lasting=rf"""
        (?:from\s(?:now|here|this\spoint|today|this\smoment)(?:\s(?:on|onwards?|forward))?|henceforth|hereafter|starting\s(?:now|today|from\snow))(?:,\s*|\s+){_NOT_A_SUBJECT}\S
        |(?:going|moving)\sforward(?:,\s*|\s+(?=(?:please|you|all|every|we|use|do|don't|always|never|i\s(?:want|need|expect))\b)){_NOT_A_SUBJECT}
        |(?:in|for)\s(?:(?:the\s)?future\b|all\s(?:your\s)?(?:future|your)\b|(?:all|every|any)\s(?:\w+\s){{0,3}}(?=(?:please|you\s(?:write|give|send|make)\b)))(?:\s\w+){{0,3}}?,?\s(?:please\s)?{_NOT_A_SUBJECT}(?!\w+\sthey\b){_CONDUCT}\b
        |(?:(?:you\s(?:must|should|need\sto|have\sto|are\sto|shall|will|can|may|ought\sto)\s)?(?:always|never)|make\ssure\s(?:to|that\syou|you)\s(?:always|never)|(?:be\ssure|remember|try)\sto\s(?:always|never))\s{_BASE}
        |you\s(?:must|should|may|can|shall)\s(?:not\sever|never|only|under\sno)\b
        |(?:under\sno\scircumstances?|on\sno\saccount|at\sno\s(?:point|time)|in\sno\scase)\b
        |(?:do\snot|don't|dont)\s(?:you\s)?ever\b
        |(?:stay|remain|keep)\sin\scharacter\b|never\s(?:break|leave|drop)\scharacter
        |(?:whenever|every\stime|each\stime|any\s?time|if)\s(?:you|i\s(?:say|ask|write|type|send|mention|tell|give|paste|call|use|want|need)|we\s(?:talk|speak|discuss|write|use))\b(?=.*(?:,|\bthen\b))(?!.*\b(?:crashes|fails|asks|shows|happens)\b)(?:(?<!if\syou)(?<!if\si)|)(?!x)
        |(?:in|for|within|throughout|on)\s(?:this|our|the\sentire|the\swhole)\s(?:project|repo(?:sitory)?|codebase|team|story|conversation|chat|game|campaign|thread|book|document)\b.*\b(?:only|always|never|must|every|each|all|no|don't|do\snot|have\sto|has\sto)\b
        |keep\sin\smind\b|bear\sin\smind\b|remember(?:\sthat\b|:|,\s(?=i\b|my\b|we\b|you\b|the\b|never\b|always\b|no\b))
        |(?:i(?:'d|\swould)?\s(?:rather|prefer|like|love|appreciate))\s(?:you\sto\salways|it\sif\syou\s(?:always|never|only|could\salways)|that\syou\b|to\sbe\s\w+)
        |(?:i\s(?:want|need|expect|require)|i(?:'d|\swould)\s(?:like|prefer))\s(?:every|each|all\s(?:your|of\syour|the)?|any|your)\b.*\b(?:to|in|with)\b
        |i\s(?:want|need|expect|would\slike)\syou\sto\b(?=.*(?:{_GENERAL}))
        |(?:as\sa\s(?:general\s)?rule|by\sdefault|at\sall\stimes|in\sgeneral|without\sexception)(?!\sof)[,:]?\s{_NOT_A_SUBJECT}(?!(?:a|an|the)\b)
        |(?:no|zero)\s(?!one\b|idea|wonder|matter|doubt|way\b|thanks|problem|worr|need\b|longer|sooner).*(?:,?\splease\b|\bin\sany\b|\bin\syour\b|\bat\sall\b|\bever\b|\ballowed\b|\bunless\b)(?!.*\b(?:was|were|came|did|had|has)\b)
        |(?:all|every|each|any)\s(?!of\b)(?:[\w-]+\s){{1,7}}?(?:must|should|has\sto|have\sto|needs?\sto|is\sto|are\sto|shall|may\snot|cannot|can't)\s(?!be\s(?:a\sbug|here|fine)|have\sbeen)
        |(?:the\s|your\s|my\s|our\s)?(?:[\w-]+\s){{1,6}}?must\s(?:always|never|not\s(?!have|be\s(?:easy|the)))
        |you\s(?:are|'re)\s(?:not\sallowed|forbidden|only\sallowed|never\sallowed|never\sto)\b
        |it(?:'s|\sis)\s(?:important|essential|crucial)\sthat\syou\s(?:always|never)
        """,
    usual=rf"""
        (?:do\snot|don't|dont|do\snever)\s(?!(?:worry|forget|get\sme|tell\sme|you|bother|panic|cry|go\sgentle|mind|mention\sit|hesitate|sweat|take\sit|know|think|like|have|want|need|see|understand
            |believe|care|feel|even|be\s(?:sorry|silly|afraid|sad|shy|mad)|give\sup|hold|blame|laugh|look|thank|lose|miss\sit|spoil\sit|wait|let\sme|move|shoot|leave\sme)\b){_BASE}
        |stop\s\w+ing\b|quit\s\w+ing\b|refrain\sfrom\b|avoid\s(?!it\b|him\b|her\b|them\b)\w+
        |{_CONDUCT}\b(?=.*(?:{_GENERAL}))(?!.*\?)
        |call\sme\s(?:[A-Z]|by\b|the\b|your\b)|address\sme\s(?:as|by|with)\b|(?:speak|talk|write|reply|respond|answer)(?:\s(?:to\s)?me)?\s(?:only\s)?(?:in|like|as|with)\s(?!this\b|that\b|your\sown\btime)
        |keep\s(?:your|the|all|every|each|it|things|answers|replies|responses|messages|functions|sentences|paragraphs)\b(?!\s(?:change|faith|good)\b).*\b(?:short|brief|concise|simple|formal|informal|warm|polite|under|below|within|small|clean|tone|plain|friendly)\b
        |remember\sto\s(?!breathe)|make\ssure\s(?:to|that|you|every|all|each|no)\b(?=.*(?:{_GENERAL}|\ball\b))
        |i\sprefer\b(?=.*\b(?:please|over|instead\sof|rather\sthan)\b.*(?:\bplease\b|\bso\b|code|write|answer|repl|use))
        |you\s(?:must|may|shall|can)\s(?:not|only|never|always)\b|you\smust\s(?!be|have)\w+(?=.*(?:{_GENERAL}))
        |(?:only|just)\s(?:ever\s)?(?:use|write|answer|reply|respond|speak|talk|show|give|send|include|output|return|print|commit|suggest)\b
        |(?:you(?:'re|\sare)\s(?:now\s)?(?:to|my|a|an|the|called|[A-Z])\b).*\b(?:you\s(?:never|always|only|must|speak|do\snot|don't))\b
        |(?:we|i)\s(?:only|always|never)\s(?:use|write|commit|deploy|format|log|name|ship|push|merge)\b(?=.*\b(?:so|please|you)\b)
        |(?:use|write|prefer|choose|pick)\s\S+(?:\s\S+){{0,4}}?\s(?:instead\sof|rather\sthan|over|and\snot|not)\s
        """,
    once=r"""\b(?:yet|right\snow|for\snow|just\snow|now|today|tonight|this\stime|this\sonce|just\sonce|once\smore|this\sone|that\sone|these\stwo|tomorrow|while\si|before\si(?:'ve|\shave)?\s(?!say)
        |until\s(?:\w+\sis|i\s(?:am|get|come|look))|for\sa\s(?:moment|second|minute)|in\smy\slast|again,\sbut|the\slast\s(?:question|one|message)|when\syou\smake\sthe|for\sthis\s(?:test|slide|one|file|line|run))\b
        |^(?:\W*\w+){1,3}\s(?:it|this|that|them|these|those)\s*(?:[,.!]|$)""",
    against=r"""\b(?:said|says|told|whispered|muttered|replied|declared|swore|vowed|announced|shouted|yelled|sang|according\sto|the\ssign|the\smanual|used\sto|wrote|reads)\b
        |\b(?:he|she|they|it)\s(?:always|never)\b|^(?:could|can|would|will|should|do|does|did|is|are|was|were|have|has|why|what|how|when\sdo|where|who|which|must|may|shall)\s(?:i|you|we|he|she|it|they|the|a|this|that|there|my|your|every)\b(?!.*\bplease\b.*\bnever\b)
        |^(?:i|we)(?:'ve|'ll|\shave|\swill|\swas|\swere|\scan't|\scannot|\sdon't|\sdo\snot|\sdidn't)\b(?!.*,\s*(?:so\s)?(?:please|from\snow|always|never|don't|do\snot)\b)|^let's\b""",
)

_ONCE_ZH = r"先(?:别|不要|不|帮|看|停)|这次|这一次|这回|暂时|现在(?!起|开始)|今天(?!起|开始)|今晚|明天|等我|等\w{1,6}回来|看一眼|刚才|马上|一会儿?|这(?:个|条|段|句|张|份|只|台|把)(?!项目|角色|仓库|故事|对话|群|游戏|词|字|世界)|那(?:个|条|段|句|张|份|只|台|把|扇)|上一|最后一"
_ORDER_ZH = r"(?:请|都[要得按用先给是不以只必]|要[用先有写带把按以加]|不要|别|不能|不许|不准|禁止|必须|务必|一律|统一|只[用写说给能准许回]|先|每次|凡是|记得|默认|按照?|尽量|用\w|叫我|你[要叫是得都说就只不别必]|说话|回答|回复|称呼|始终|保留|附上|列成|加上|写成|全部|全都)"

_ZH = _Rules(
    lead=r"^(?:(?:请你?|麻烦你?|拜托|那么?|好的?|所以|另外|还有|对了|然后|而且|但是?|不过|注意|重要|规则|规矩|提醒一下|说一下|听好|首先|其次|最后|再说一遍|再强调一遍)[，：,:\s]*)+|^你(?=[必一始永不别只要])",
    lasting=rf"""
        (?:以后|今后|往后|日后|之后|从现在(?:起|开始)|从今(?:天|以后|往后|儿)?(?:起|开始|以后|往后)?|从这(?:里|一刻|以后)(?:起|开始)?|从此(?:以后)?|下次(?:开始|起)|此后|后面|接下来)(?:，|,|：|\s)*(?!会|有机会|再说|再看|还[有没剩]|谁|怎|算)(?=.*{_ORDER_ZH})
        |(?:永远|任何时候|任何情况下?|无论如何|不管\w{{1,10}}|绝对|绝|千万|一定|一概|坚决|始终|一直)(?:，|都|也|你)*(?:不要|不能|不许|不准|不得|别|禁止|不可以?|要(?!走)|必须|记得|得先)
        |(?:始终|一直|全程|永远)(?:要|用|以|保持|站|按|使用|说|当|扮演|称|叫|把|给|坚持)
        |(?:记住|牢记|记好|记清楚|谨记|记着)(?!了|的|我的名字)(?:[，：:\s]|这个项目|我|你|以后|每|不|别|要|所有|一)
        |(?:务必|切记|切勿|严禁|禁止|不许|不准|不得|勿|谢绝)(?!两个字|动[，。！]|词)[^，。]
        |(?:每次|每回|每当|每一次|每个|每一|每条|每份|每章|凡是?|所有|一切|任何|全部|只要是?)[^，。；]{{0,24}}?(?:，|,|\s)*(?:你|就|都|也)*(?:都?要|都得|都?必须|都?先|必须|一律|统一|记得|请|不要|别|务必|都用|都按|都写|都加|都给|禁止|不能|不得|不许|都不能)
        |(?:只要|如果|当|要是)我(?:说|喊|问|发|提到|打出|输入|用)[^。]{{0,20}}(?:你就|就|请|你要|你)
        |(?:[^，。]{{1,16}})?(?:一律|统一(?=用|按|写|使用|采用|以|改|叫|加|放|为)|一概)(?!没|八|七|六|五|九)
        |(?:[^，。我他她]{{1,16}})?(?:都|均|全部|一定|全都)必须|(?:从不|绝不|决不)(?=要|能|可|许)
        |(?:叫我|称呼我|喊我|管我叫)(?!起床|去|来|做|干|的|了)
        """,
    usual=r"""
        (?:再也)?(?:不要|别再?|不能再|不可以|甭)(?!紧|钱|担心|急|说了|看他|看她|的|人|家|墅|处|跟我说|忘了|怕|慌|难过|生气|哭|走|闹|理他|管[它他]|客气|介意|见怪|笑|误会|着急|灰心|动[，。！]|想太多|逗)[^，。？]
        |[^，。]{2,14}(?:的时候|时|之前|之后|里|中|方面|上)(?:，|,)?(?:请|也|就|都|你)?(?:不要|别|必须|务必|只能|只用|要用|要先|要有|要带|请用|不能)
        |[^，。我他她昨]{1,16}(?:必须|不得|不准|不许|严禁)(?!的)[^，。]|必须(?!的|得走|承认)[^，。]
        |(?:语气|口吻|口气|文风|风格|说话|回答|回复|答案|措辞|称呼|标题|注释|格式|排版|例子|代码|日期|金额|时间)(?:\w{0,4})?(?:要|得|尽量|保持|请|用|统一|别|不要|必须|只)(?!了)
        |(?:只|仅)(?:用|准|许|能用|写|回答|给|输出|说|讲|看|使用|允许|限)(?!了|要|需要)
        |(?:我)?(?:希望|想要?|要求|更?喜欢|需要|建议|宁愿|偏好)你(?!能考|快乐|幸福|好起来|帮我|给我|写|来|去|告诉)
        |(?:尽量|尽可能|优先|默认|避免|少用|多用|保持)(?:用|使用|说|写|给|按|不|少|别|把|以|简|短|出现)?\S
        |(?:注意|记得)(?:不要|别|每|以后|要|所有|一律|我)
        |用(?:中文|英文|简体|繁体|敬语|大白话|口语|第一人称|第二人称)\S*(?:回答|回复|说|写|交流|对话|跟我)
        |我(?:对|不吃|不喝|不能吃|吃素)\S*(?:过敏|所以|别|不要|推荐|给我)
        """,
    once=_ONCE_ZH,
    against=r"""(?<![别要我你没话])说(?:过|道)?(?:[，。：:“]|$)|[他她们板父师妈爸爷奶生员士卫王者人册]说(?!话)|写着|写道|里写[：:]|喊道|唱|下令|发誓|规定|低声|牌子|据说|觉得|认为|可是|却|结果大家
        |为什么|是不是|有没有|能不能|会不会|要不要(?!再动手)|哪里|谁也|吗$|呢$|^(?:我|他|她|它|他们|我们)(?:们)?(?:以后|必须|不要|从来|从不|总是|一直|永远|每次|已经|刚)|(?<!不)(?<!别再给我讲大道理)极了|烦死|乐坏|太\w{1,4}了吧|白跑
        |(?:昨天|上周|去年|小时候|曾经|当时|那天)""",
)
