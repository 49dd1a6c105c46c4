"""Finding identifiers in text by rule: what must be repeated letter by letter to be of use, in English and Chinese.

Paths, URLs, addresses, ports and numbers with meaning, tickets, commits, versions, environment variables, error codes, code names,
dates and amounts, quoted and introduced names. `latin` words that are ordinary words are never looked at twice, so the
cost is one pass over the text and little more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from turnfold.core.text.scripts import CJK, HAN

Kind: TypeAlias = Literal[
    "url", "email", "path", "port", "ticket", "commit", "uuid", "version", "variable", "error", "address", "code",
    "phone", "amount", "date", "number", "quoted", "introduced", "name", "place",
]  # fmt: skip

KIND_WEIGHTS: dict[Kind, float] = {
    "url": 1.0, "email": 1.0, "path": 0.9, "port": 1.0, "ticket": 1.0, "commit": 0.9, "uuid": 0.8, "version": 0.8, "variable": 0.9,
    "error": 0.9, "address": 1.0, "code": 0.7, "phone": 1.0, "amount": 0.7, "date": 0.7, "number": 0.7, "quoted": 0.7,
    "introduced": 1.0, "name": 0.5, "place": 0.6,
}  # fmt: skip
"""How much is lost with an identifier of a kind, from what it costs to find it again without its letters."""

MAX_CHARS = 200
"""Characters; a longer token is a blob, not something anyone looks for."""


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """An identifier in a text. `value` is how it reads with its meaning ("port 5433"), `key` what must occur ("5433")."""

    kind: Kind
    key: str
    value: str


def mentions(text: str, *, names: bool = True) -> list[Mention]:
    """Return the identifiers of `text` in order of kinds, with repetitions. Without `names`, no quoted or proper names:
    in tool output every string is quoted and every line begins with a capital.
    """
    found = [*_paths(text), *_latin(text), *_phones(text)] if _SIGN.search(text) else []
    if not text.isascii():
        found.extend(_chinese(text))
    if names:
        found.extend(_names(text))
    return found


def _mention(kind: Kind, key: str, value: str | None = None) -> Mention:
    return Mention(kind=kind, key=key, value=value or key)


# --- paths: the only tokens that may hold Chinese between their ASCII parts

_COMPONENT = rf"(?:[A-Za-z0-9_.@%+~{{}}$*-]+|[{CJK}]+(?:\.[A-Za-z0-9]+)?)"
_PATH = re.compile(
    rf"(?<![A-Za-z0-9_/\\.:])(?:[A-Za-z]:\\|\\\\|~/|\.{{1,2}}/|/)(?:{_COMPONENT}[/\\])*{_COMPONENT}[/\\]?"
    rf"|(?<![A-Za-z0-9_/\\.:])[A-Za-z0-9_.-]+/(?:{_COMPONENT}/)*[{CJK}]{_COMPONENT}*(?:/{_COMPONENT})*"
)


def _paths(text: str) -> Iterator[Mention]:
    if "/" not in text and "\\" not in text:
        return
    for match in _PATH.finditer(text):
        path = match.group().rstrip(".,:;")
        if 3 < len(path) <= MAX_CHARS and re.search(r"[A-Za-z一-鿿]{2}", path):
            yield _mention("path", path)


# --- words of ASCII: each is classified by the first pattern that fits the whole of it

_TOKEN = re.compile(
    r"(?<![\w.])\$?\d{1,3}(?:,\d{3})+(?:\.\d+)?|!\d+"
    r"|(?<![.\\:@#$%~+=&?-])[A-Za-z0-9_./\\:@#$%~+=&?*-]*[A-Za-z0-9_/*](?:\(\))?"
)
_PLAIN = re.compile(r"[A-Za-z]?[a-z]*|[A-Z]{2,}|[A-Za-z]+(?:-[a-z]+)+|[A-Z]?[a-z]+[/][a-z]+")
_EXTENSIONS = (
    "py|js|ts|tsx|jsx|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|bash|sql|md|rst|txt|json|jsonl|yaml|yml|toml|ini|cfg|conf"
    "|env|lock|log|csv|tsv|xml|html|css|scss|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|webp|mp[34]|wav|zip|gz|tgz|tar|zst|xz|whl"
    "|ipynb|proto|tf|vue|db|sqlite|pem|key|crt|service|bak|ttf|woff2?|pest|lua|ex|exs|erl|hs|ml|r|jl|pl|bat|ps1|psd|ai|blend|stl"
)
_DOMAINS = "com|org|net|io|dev|cn|app|ai|co|uk|de|fr|jp|kr|tw|hk|edu|gov|me|info|xyz|cloud|tech|site|example|local|internal|lan|test"
_ROOTS = "src|lib|libs|tests?|docs?|app|apps|api|bin|etc|usr|var|opt|pkg|cmd|packages|scripts|config|tools|feature|feat|fix|bugfix|hotfix|release|origin|chore|public|assets|benchmarks|examples|internal|services|modules"
_TABLE: tuple[tuple[Kind, str], ...] = (
    ("url", r"[a-z][a-z0-9+.-]*://\S+|www\.\S+\.\S+|git@[\w.-]+:\S+"),
    ("email", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("uuid", r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    ("address", r"\d{1,3}(?:\.\d{1,3}){3}(?:[:/]\d{1,5})?"),
    ("date", r"(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?"),
    ("date", r"(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01])(?:/\d\d(?:\d\d)?)?|(?:19|20)\d\d-(?:0[1-9]|1[0-2])"),
    ("date", r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:[ap]m)?|\d{1,2}(?:am|pm)"),
    ("path", rf"(?:[\w.@%+~-]+/)+[\w.@%+~-]*\.(?:{_EXTENSIONS})|(?:[\w.@%+~-]+/){{2,}}[\w.@%+~*-]*|(?:{_ROOTS})/[\w.@%+~*-]+/?"),
    ("path", rf"[\w-][\w.-]*\.(?:{_EXTENSIONS})|\.(?:env|gitignore|bashrc|zshrc|npmrc|dockerignore|gitattributes)\S*|\*\.[a-z0-9]+"),
    ("path", r"[A-Za-z]:[\\/]\S+|\\\\\S+"),
    ("address", rf"(?:[a-z0-9-]+\.)+(?:{_DOMAINS})(?::\d{{2,5}})?(?:/\S*)?|localhost:\d{{2,5}}|[a-z][a-z0-9-]*:\d{{4,5}}"),
    ("port", r":\d{2,5}"),
    ("version", r"v\d+(?:\.\d+)*(?:[-.+]?[A-Za-z0-9.]+)?|\d+\.\d+\.\d+(?:[-.+][\w.+-]+)?|\d+\.\d+-?(?:alpha|beta|rc|dev|a|b)\.?\d*"),
    ("commit", r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}|sha\d+:[0-9a-f]+"),
    ("error", r"[A-Z]\w*(?:Error|Exception|Warning|Fault)|E[A-Z]{4,}|ERR_\w+|(?:0x|0X)[0-9A-Fa-f]{2,}|(?:TS|CS|E|W|C|F|PLR|RUF|ORA-?|SQL|LNK|MSB|CA)\d{3,5}"),
    ("ticket", r"[A-Za-z]{1,3}[A-Z0-9]{0,9}-\d+(?:-\d+)*|[#!]\d+|[\w.-]+/[\w.-]+#\d+"),
    ("variable", r"\$\{?[A-Za-z_]\w*\}?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=\S+)?|[A-Z][A-Z0-9_]+=\S+"),
    ("code", r"--?[a-z][\w-]*=\S+|--[a-z][\w-]+"),
    ("code", r"@[\w-]+(?:/[\w.-]+)?|[\w.-]+@\d[\w.-]*|#[A-Za-z]\w+"),
    ("code", r"[\w.:]+\(\)|\w*[A-Za-z0-9]_\w+(?:\.\w+)*|_\w*[A-Za-z]\w*|[a-z]+[A-Z]\w*|(?:[A-Z][a-z0-9]+){2,}\w*"),
    ("code", r"[A-Za-z]\w*(?:(?:\.|::)[A-Za-z_]\w+)+|[A-Za-z_][\w.-]*[/:@=][\w.+-]*\d[\w.+-]*"),
    ("code", r"(?=[\w.:-]*\d)(?=[\w.:-]*[A-Za-z])[A-Za-z0-9][\w.:-]*"),
)  # fmt: skip
_CLASSES: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple((kind, re.compile(pattern)) for kind, pattern in _TABLE)
_SIGN = re.compile(
    r"[0-9_/\\@#$%=.:()A-Z-](?:(?<=[0-9_/\\@#$%=])|(?<=[A-Za-z][.:])[A-Za-z]|(?<=[A-Za-z]\()\)[A-Za-z]|(?<=-)-[A-Za-z]|(?<=[a-z][A-Z])"
    r"|(?<=E)[A-Z]{4})"
)
"""Without one of these a text has words only."""
_QUANTITY = re.compile(
    r"\d+(?:st|nd|rd|th)|\d[\d.,]*(?:k|m|b|km|kg|g|mg|ml|l|cm|mm|ms|s|h|hrs?|min|mins|gb|mb|kb|tb|px|w|kw|v|mhz|ghz|fps|x|%|s)",
    re.IGNORECASE,
)
_NUMERIC = re.compile(r"[$+#!]?\d[\d.,:/-]*%?")


def _latin(text: str) -> Iterator[Mention]:
    for match in _TOKEN.finditer(text):
        token = match.group().strip("=&?~+*") if match.group()[0] in "=&?~+*" else match.group()
        if _PLAIN.fullmatch(token) or not 1 < len(token) <= MAX_CHARS:
            if token.isdigit():
                yield from _number(text, match.start(), match.end(), token)
            continue
        if _NUMERIC.fullmatch(token) and token[0] not in "#!":
            kind = _numeric_kind(token)
            if kind is not None:
                yield _mention(kind, token)
            else:
                yield from _number(text, match.start(), match.end(), token)
        elif _QUANTITY.fullmatch(token):
            yield from _quantity(text, match.start(), match.end(), token)
        else:
            yield from _classified(token, text, match.start())


def _classified(token: str, text: str, start: int) -> Iterator[Mention]:
    if token.startswith(("/", "./", "../", "~/", "\\")) or re.match(r"[A-Za-z]:\\", token):
        return  # a path, found above
    for kind, pattern in _CLASSES:
        if pattern.fullmatch(token):
            word = _word_before(text, start) if kind == "ticket" and token[0] in "#!" else None
            yield _mention(kind, token, f"{word} {token}" if word else None)
            return


def _quantity(text: str, start: int, end: int, token: str) -> Iterator[Mention]:
    """A number with its unit; an ordinal ("9th") is one only in a date."""
    ordinal = token[-2:].lower() in {"st", "nd", "rd", "th"}
    dated = _MONTH_BEFORE.search(text[max(0, start - 12) : start]) or _MONTH_AFTER.match(text, end)
    if dated:
        yield from _number(text, start, end, token)
    elif not ordinal:
        yield _mention("amount", token)


def _numeric_kind(token: str) -> Kind | None:
    """Kind of a number that has a meaning by its form alone."""
    for kind, pattern in _CLASSES[3:7]:
        if pattern.fullmatch(token):
            return kind
    if re.fullmatch(r"\d+\.\d+\.\d+(?:-\d+)?", token):
        return "version"
    if re.fullmatch(r"\d+-\d[\d-]*", token):
        return "number"
    return "port" if re.fullmatch(r":\d{2,5}", token) else None


_WORDS_BEFORE = re.compile(
    r"""\b(ports?|prs?|mrs?|pull\srequests?|merge\srequests?|issues?|tickets?|bugs?|rooms?|orders?|lines?|pages?|version|build|flight|gate|invoice|case|id|pin
    |code|extension|ext|chapter|step|row|apartment|apt|unit|suite|bus|train|seat|table|batch|lot|model|account|customer|employee
    |release|sprint|phase|error|err|errno|exit|signal|sqlstate|status|http|pid|no\.|number|commit|revision|rev|level|track|platform|bay|shelf|box|locker|house
    |floor|user|uid|timeout|retries|limit|python|node|java|postgres|postgresql|mysql|redis|ubuntu|debian|go|ruby|php|ios|android)
    (?:\s(?:is|was|are|to|number|no\.?|id|code|of|at|now|be|=|numbered)){0,3}\s?[:=\#]?\s?\#?$""",
    re.VERBOSE | re.IGNORECASE,
)
_WORDS_BEFORE_ZH = re.compile(
    r"(端口|工单|订单|单号|编号|版本|房间|门牌|航班|车次|车牌|会议号|会议|密码|口令|账号|工号|学号|电话|手机|尾号|座位|错误码|状态码|代码|提交|分支|线路"
    r"|快递|柜|验证码|房号|楼|栋|单元|货号|型号|批次|合同|发票|预算|报价|超时|上限|阈值|编码|用户|进程|行号|第)"
    r"(?:号|是|为|改成|改为|换成|叫|在|到|设成|设为|用|从|[：:=\s])*$"
)
_UNIT_AFTER = re.compile(
    r"""\s?(?:%|percent\b|per\scent\b|°C?|(?:ms|milliseconds?|s|sec(?:ond)?s?|min(?:ute)?s?|h|hours?|days?|weeks?|months?|years?(?:\sold)?|km|kilometers?|miles?|m
    |meters?|cm|mm|inch(?:es)?|feet|ft|kg|grams?|g|mg|lbs?|pounds?|ml|liters?|gb|mb|kb|tb|gib|mib|gigabytes?|megabytes?|px|dollars?|bucks|usd|eur|euros?|gbp|yuan
    |rmb|yen|kroner|kronor|francs|rubles|rupees|pesos|won|baht|zloty|lira|dirhams|people|users|tokens|rows|requests|times|am|pm|a\.m\.|p\.m\.|o'clock|degrees|calories|steps|pages|tickets|seats)\b
    |(?:多)?(?:元|块钱?|万|亿|千|百|号|日|月|年|岁|点|分钟?|秒|小时|天|周|个月|公里|里|米|厘米|毫米|公斤|斤|克|吨|升|度|层|楼|栋|室|路|页|章|集|台|辆|条|座
    |人|位|名|次|遍|折|倍|行|字|件|张|本|套|盒|瓶|株|棵|毫克|毫升|兆|位数|美元|欧元|美金|寸|平米?|亩|期|级|版))""",
    re.VERBOSE | re.IGNORECASE,
)
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_MONTH_BEFORE = re.compile(rf"\b((?:{_MONTHS})\.?\s)$", re.IGNORECASE)
_MONTH_AFTER = re.compile(rf"(?:st|nd|rd|th)?(?:\sof)?\s(?:{_MONTHS})\b(?:,?\s(?:19|20)\d\d)?", re.IGNORECASE)
_YEAR_AFTER = re.compile(r"(?:st|nd|rd|th)?(?:,\s?(?:19|20)\d\d)?")
_ISSUE_AFTER_ZH = re.compile(r"\s?号(?:问题|工单|线|楼|房|桌|门|机|库|单|车|厅|窗口|店|院|航站楼|登机口)?")


def _word_before(text: str, start: int) -> str | None:
    """The word that gives a number its meaning, where one stands right before it."""
    before = text[max(0, start - 36) : start]
    match = _WORDS_BEFORE.search(before) or (None if before.isascii() else _WORDS_BEFORE_ZH.search(before))
    return match.group(1) if match else None


def _number(text: str, start: int, end: int, token: str) -> Iterator[Mention]:
    """A number is an identifier by its form, its currency sign, its unit, or the word before it."""
    if start and text[start - 1] in "$€£¥￥":
        token, start = text[start - 1 : end], start - 1
        unit = re.match(r"\s?(?:k|m|bn|million|billion|thousand)\b", text[end : end + 10], re.IGNORECASE)
        yield _mention("amount", token + (unit.group() if unit else ""))
        return
    month = _MONTH_BEFORE.search(text[max(0, start - 12) : start])
    if month:
        year = _YEAR_AFTER.match(text, end)
        yield _mention("date", month.group(1) + token + (year.group() if year else ""))
        return
    month_after = _MONTH_AFTER.match(text, end)
    if month_after:
        yield _mention("date", text[start : month_after.end()])
        return
    word = _word_before(text, start)
    if word is not None:
        yield from _meant(word, text, start, end, token)
        return
    unit = _UNIT_AFTER.match(text, end)
    if unit:
        yield _mention("amount", text[start : unit.end()])
    elif sum(char.isdigit() for char in token) >= 3:
        yield _mention("number", token)


def _meant(word: str, text: str, start: int, end: int, token: str) -> Iterator[Mention]:
    if word == "第":
        after = _ISSUE_AFTER_ZH.match(text, end) or _UNIT_AFTER.match(text, end)
        begin = text.rfind("第", 0, start)
        yield _mention("number", text[begin : after.end() if after else end])
        return
    lowered = word.casefold().rstrip("s")
    port = lowered in {"port", "端口"}
    ticket = lowered in {"pr", "mr", "issue", "ticket", "bug", "pull request", "merge request", "工单"}
    kind: Kind = "port" if port else "ticket" if ticket else "version" if word in {"version", "版本"} else "number"
    yield _mention(kind, token, f"{word} {token}")


_PHONE = re.compile(
    r"(?<![\w+-])(?:\+\d{1,3}[\s-]?)?(?:\(\d{1,4}\)[\s-]?)?\d{2,4}(?:[\s-]\d{2,5}){1,4}(?![\w-])|\+\d{7,15}\b"
)


def _phones(text: str) -> Iterator[Mention]:
    for match in _PHONE.finditer(text):
        digits = sum(char.isdigit() for char in match.group())
        if 7 <= digits <= 15 and not re.match(r"(?:19|20)\d\d-\d\d-\d\d", match.group()):
            yield _mention("phone", match.group())


# --- Chinese numerals, dates, places and names

_DIGITS = "〇零一二两三四五六七八九十百千万亿半"
_STRICT_UNITS_ZH = "厘米|毫米|公里|公斤|毫克|毫升|小时|分钟|块钱|个月|个星期|岁|号|层|楼|米|元|斤|克|吨|度|寸|亩|秒"
_UNITS_ZH = (
    _STRICT_UNITS_ZH
    + "|平方米|平米|里|块|天|周|年|月|日|人|位|名|页|章|集|台|辆|座|坛|碗|瓶|盒|套|株|棵|期|级|版|字|折|倍|张|句|行|间|室|两|指|代|道|场|排|件"
)
_AMOUNT_ZH = re.compile(
    rf"百分之[{_DIGITS}]+(?:点[{_DIGITS}]+)?"
    rf"|\d{{2,4}}年(?:\d{{1,2}}月(?:\d{{1,2}}[日号])?)?|\d{{1,2}}月\d{{1,2}}[日号]?|\d{{1,2}}点(?:\d{{1,2}}分?|半)"
    rf"|(?:农历|正月|腊月|[{_DIGITS}\d]+月)(?:初|廿)?[{_DIGITS}\d]+[号日]?|[{_DIGITS}\d]{{1,4}}年(?:[{_DIGITS}\d]+月)?"
    rf"|(?:周|星期|礼拜)[一二三四五六日天]|(?:早上|上午|中午|下午|傍晚|晚上|凌晨|半夜)[{_DIGITS}\d]+点(?:半|[{_DIGITS}\d]+分?)?"
    rf"|[{_DIGITS}]+点[{_DIGITS}]+(?!钟)|[{_DIGITS}]+分[{_DIGITS}]+秒?|[{_DIGITS}]+(?:米|块|元|斤|里)[一二三四五六七八九]+"
    rf"|[{_DIGITS}]{{2,}}(?:{_UNITS_ZH})?|[二两三四五六七八九十](?:{_UNITS_ZH})|一(?:{_STRICT_UNITS_ZH})"
)
_NOT_UNITS = frozenset("的了着过是在有和与就也都又还很太不没，来去")
_IDIOMS = (
    "一下",
    "一些",
    "一点",
    "一样",
    "一起",
    "一直",
    "一定",
    "一般",
    "一边",
    "十分",
    "万一",
    "两边",
    "千万",
    "一切",
    "一会",
    "一百个",
    "一半",
    "三心",
    "半天",
    "万一",
)
_LONG_SUFFIXES = "大学|医院|公司|博物馆|图书馆|体育馆|美术馆|泳馆|机场|车站|小区|大厦|酒店|饭店|银行|中学|小学|公园|广场|工作室|菜市场|街道|胡同|码头|花园|剧场|剧院|影院|教堂|工厂|仓库|客栈|宿舍|基地|食堂"
_SHORT_SUFFIXES = "路街巷区市县镇村桥湖寺庙岛港馆店厂局院宫山谷崖塔堡城"
_EDGE_ZH = "的了着过是在有和与就也都又还很太不没我你您他她它们这那哪谁啥吗呢吧啊呀到去来从把被给让跟对住叫找"
_EDGE_PLACE = _EDGE_ZH + "一两几个座条家间所看说走放造搭留得要多像后前里外上下想问路整"
_PLACE_ZH = re.compile(
    f"(?:(?![{_EDGE_PLACE}])[{HAN}]){{2,6}}?(?:{_LONG_SUFFIXES})|(?:(?![{_EDGE_PLACE}])[{HAN}]){{2,4}}?[{_SHORT_SUFFIXES}](?![{HAN}](?<![{_EDGE_ZH}里边上见吃买开门口]))"
)
_SURNAMES = (
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻苏潘葛范彭郎鲁韦马苗方俞任袁柳鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬傅卞齐康伍余顾孟黄"
    "穆萧尹姚邵湛汪祁毛禹狄贝臧戴谈宋茅庞熊纪舒屈祝董梁杜阮闵席季贾娄童颜郭梅盛林刁钟徐邱骆夏蔡田樊胡凌霍虞万支柯卢莫裘缪丁宣邓郁杭洪诸左崔吉龚程嵇邢裴陆荣"
    "翁荀羊甄曲封芮靳井巫焦侯宓蓬郗班仰仲伊宫宁仇栾甘祖武符刘景詹束龙叶幸司韶黎薄印宿怀蒲卓蔺屠蒙池乔胥苍翟谭贡姬申扶冉宰郦桑濮燕冀浦尚庄晏柴瞿阎慕连茹习艾鱼"
    "廖庾暨耿匡寇禄阙欧殳沃蔚夔隆巩聂晁敖融訾辛阚简饶曾沙鞠须丰巢蒯查荆竺逯盖桓覃佟肖付闫石牛高白江"
)
_TITLES = "老师|先生|女士|教练|医生|大夫|经理|总监|师傅|阿姨|叔叔|教授|律师|主任|同学|工程师|队长|船长|将军|公主|国王|道长|掌柜|总|哥|姐|工|叔|婶|爷|奶奶|伯|娘|嫂|婆婆|大爷|大妈"
_END_ZH = rf"(?=[^{HAN}]|$|的|说|在|是|负责|管|来|去|和|跟|把|也|就|会|都|吧|呢|吗|了|今|昨|明|那|这|要|想|给|做|带|有)"
_PERSON_ZH = re.compile(
    rf"(?:(?<=[是叫找和跟给请让由姓为])|(?<![{HAN}]))[{_SURNAMES}][{HAN}](?![{_EDGE_ZH}才])[{HAN}]{_END_ZH}"
    rf"|(?<=[是叫姓])[{_SURNAMES}][{HAN}]{_END_ZH}|[{_SURNAMES}](?:(?![{_EDGE_ZH}])[{HAN}]){{0,2}}?(?:{_TITLES})"
    rf"|(?:(?<=[是叫找和跟给请让由])|(?<![{HAN}]))[小老](?![时心区孩学人家公婆说组板师友实虎鼠样妈爸年早天])(?![{_EDGE_ZH}])[{HAN}]{_END_ZH}"
    rf"|阿(?![姨拉尔里根富斯基伯])(?![{_EDGE_ZH}])[{HAN}]"
)
_FOREIGN_ZH = re.compile(
    "(?=[艾丽莎娜露琳奥尔斯特罗兰德克里安卡伊塞维格雷诺亚洛菲尼米拉贝莱雅希尤佩泰塔迪瓦]{0,5}[莉娅妮薇蒂茜芙瑟珀萨曼黛琪])"
    "[艾丽莎娜露琳奥尔斯特罗兰德克里安卡伊塞维格雷诺亚洛菲尼米拉贝莱雅希尤佩泰塔迪瓦莉娅妮薇蒂茜芙瑟珀萨曼黛琪]{2,8}"
)
"""Names written by sound use few characters, some of them hardly anywhere else."""
_PLATE_ZH = re.compile(r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-Z][·•]?[A-Z0-9]{5,6}")
_CALLED_ZH = re.compile(
    rf"(?:名字是|名字叫|名叫|叫做|叫作|自称|取名|起名|外号|绰号|昵称|小名|大名|全名|代号|命名为|改名为?|称为|暂定名|名为|姓|叫)(?:叫|是|：)?(?![“\"「《])([{HAN}A-Za-z·]{{1,6}}?){_END_ZH}"
)
_NOT_CALLED = re.compile(
    "^[我你您他她它人做什上下来去醒不没车外这那个大家起过得着床好停也倒怎的把被又还就都太很在是有说想要会能可给让和跟一分]"
)
_KIN_ZH = re.compile(
    rf"(?:女儿|儿子|妹妹|姐姐|哥哥|弟弟|同事|室友|朋友|同学|老板|老公|老婆|妻子|丈夫|男友|女友|表哥|表姐|表弟|表妹|外甥|侄子|侄女|外婆|奶奶|邻居|闺蜜|师父|徒弟|联系人|负责人|设计师|客户|猫|狗)(?:是|叫)?(?:([{_SURNAMES}][{HAN}](?![{_EDGE_ZH}])[{HAN}])|([小阿大老][{HAN}]{{1,2}}?){_END_ZH})"
)


def _chinese(text: str) -> Iterator[Mention]:
    for match in _AMOUNT_ZH.finditer(text):
        found = match.group()
        if len(found) > 1 and not found.startswith(_IDIOMS):
            dated = "月" in found or "年" in found or found[0] in "周星礼早上中下傍晚凌半"
            yield _mention("date" if dated else "amount", found.rstrip("".join(_NOT_UNITS)) or found)
    for match in _PLATE_ZH.finditer(text):
        yield _mention("code", match.group())
    for match in _PLACE_ZH.finditer(text):
        if len(match.group()) > 2:
            yield _mention("place", match.group())


# --- names: quoted, introduced, capitalized in mid-sentence, Chinese ones by their surname or their introduction

_QUOTED = re.compile(
    r"""“([^”\n]{1,40})”|「([^」\n]{1,40})」|『([^』\n]{1,40})』|《([^》\n]{1,40})》|`([^`\n]{2,80})`"""
    r"""|"(?<!\w")([^"\n]{2,60})"|'(?<!\w')(?:([A-Z][^'\n]{1,40}|[^'\s]{2,40})'(?!\w))"""
)
_INTRODUCED = re.compile(
    r"[NnCcITtMm](?<!\w[A-Za-z])(?:(?<=[Nn])(?:ames? (?:is|are)|ame's|amed|icknamed)|(?<=[Cc])(?:all (?:me|it|him|her|them)|alled|odenamed?)"
    r"|(?<=I)(?: am|'m)|(?<=[Tt])(?:his is|itled)|(?<=[Mm])eet)\s+"
    r"((?:the )?[A-Z][\w'’-]+(?:\s(?:(?:of|de|van|the)\s)?[A-Z][\w'’-]+){0,3})"
)
_CAPITALIZED = re.compile(
    r"[A-Z](?:(?<=[a-z0-9,;)’'] [A-Z])(?:[\w’-]*[a-z]|[A-Z]+)(?:(?:\s(?:of|de|van|von|the|la)(?:\sthe)?)?\s[A-Z][\w’-]*[a-z])*"
    r"|(?:(?<![\s\S][A-Z])|(?<=[.!?\n] [A-Z]))[a-z]+(?:\s[A-Z][a-z]+)+)"
)
"""These patterns begin with one class of characters, so that the engine skips to the next of them."""
_SPEECH = re.compile(r"[。！？，；…!?]|\.\.|[,.]\s|[,.]$")
"""A quotation with the marks of a sentence is what someone said, not a name."""
_NOT_NAMES = frozenset(
    [
        "I",
        "OK",
        "TV",
        "PS",
        "US",
        "UK",
        "AM",
        "PM",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "English",
        "Chinese",
        "God",
        "Mom",
        "Dad",
    ]
)


def _names(text: str) -> Iterator[Mention]:
    for match in _QUOTED.finditer(text):
        inner = next(group for group in match.groups() if group)
        if len(inner.split()) <= 6 and not _SPEECH.search(inner):
            yield _mention("quoted", inner, match.group())
    for match in _INTRODUCED.finditer(text):
        if match.group(1) not in _NOT_NAMES:
            yield _mention("introduced", match.group(1))
    for match in _CAPITALIZED.finditer(text):
        if match.group() not in _NOT_NAMES:
            yield _mention("name", match.group())
    if not text.isascii():
        yield from _chinese_names(text)


def _chinese_names(text: str) -> Iterator[Mention]:
    for pattern in (_CALLED_ZH, _KIN_ZH):
        for match in pattern.finditer(text):
            name = next(group for group in match.groups() if group)
            if not _NOT_CALLED.match(name):
                yield _mention("introduced", name)
    for pattern in (_PERSON_ZH, _FOREIGN_ZH):
        for match in pattern.finditer(text):
            yield _mention("name", match.group())
