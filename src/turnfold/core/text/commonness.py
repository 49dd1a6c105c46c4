"""How much a term tells: nothing for the words that hold sentences together, little for everyday words.

The lists are general English and Chinese, written by hand; no corpus was counted for them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from turnfold.core.text.scripts import CJK
from turnfold.core.text.terms import terms

_EMPTY_EN = """
a an the this that these those there here it its i me my mine myself we us our ours you your yours he him his she her
hers they them their theirs who whom whose which what when where why how and or but nor so yet if then else than because
as of at by for with about against between into through during before after above below to from up down in out on off
over under again further once is am are was were be been being have has had having do does did doing done will would
shall should can could may might must ought not no nor only own same too very just also even still already ever never
now all any both each few more most other another some such much many lot lots bit one ones thing things stuff way
oh wow hey hi hello yeah yep yup yes no ok okay ah aw aww haha hehe lol omg ugh hmm um well please thanks thank welcome
sorry bye congrats sure really actually basically literally totally definitely absolutely certainly probably maybe
perhaps quite rather pretty kind sort like know think mean see say said tell told get got getting go going gone went
come came make made let take took look looks looking sound sounds seem seems feel feels felt want wanted need needed
gonna wanna gotta cuz cos hope glad good great nice cool awesome amazing fantastic wonderful lovely sweet super
don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't
don doesn didn isn aren wasn weren won wouldn couldn shouldn haven hasn hadn ain ve ll re
"""

_EVERYDAY_EN = """
able across add ago agree air allow almost alone along although always among amount anyone anything appear appreciate
area around ask away awful baby back bad beautiful become bed begin behind believe best better big body book boy break
bring brother build busy buy call car care carry case catch cause chance change chat check child children choose city
class clean clear close cold common compare complete consider continue cost country couple course create cut dad dark
date day deal dear decide deep different difficult dinner dream drive drop early easy eat end energy enjoy enough
especially evening event every everyone everything exactly example excite exciting expect experience explain eye face
fact fall family far fast father favorite feeling find fine first fit focus follow food forget form forward free fresh
friend friendship front full fun funny future game gave gift girl give given glad grow guess guy half hand handle hang
happen happy hard head hear heart heard help high hit hold home hour house huge idea imagine important incredible
inside inspire inspiring interest interesting job join journey joy keep kid kids kept kill last late later laugh lead
learn least leave left less letter level life light line list listen little live long lose lost love low lucky luck
main man matter meet memory men mention mind minute miss moment money month morning mother mom motivate move music
name near nearly new news next night nothing notice number offer often old open opportunity order part party pass past
pay peace people perfect person phone photo pic pick picture place plan play point positive possible post power
practice prepare present problem proud pull push put question quick quickly quiet reach read ready real realize reason
relax relaxing remember remind rest result return right road room run sad save school second seen self sell send sense
set share short show side sign simple since sister sit situation sleep slow small smile someone something sometimes
somewhere son soon special spend spent stand start state stay step stop story strong stick struggle struggling student
study such suggest support suppose surprise surprising sure talk taste team test text thought through throw time tip
today together tomorrow tonight took top touch tough town travel true trust truth try turn two three type
understand unique until upon use useful usual usually view visit wait walk wall warm watch water week weekend whatever
whole wife wish within without woman women wonder word work world worry worth write wrong yesterday year young
achieve amaze achievement approach aspect attention aware balance beyond blast bond bright calm celebrate challenge
challenging cheer comfort comfortable confidence connect connection cozy creative crazy cute dedicate dedication define
delicious despite determine determined difference discover effort emotion encourage epic essential excited explore
express fascinate finally gain goal grateful gratitude growth happiness hear helpful impact impress impressive improve
involve keen kindness lately meaningful mental obstacle pace passion passionate path pleasure progress pursue recharge
recently reflect resilience reward rewarding satisfy skill spot strength stress stuff succeed success talent therapeutic
thrill tiring vibe wild
"""

_EMPTY_HAN = frozenset(
    "的了着过是在有和与就也都又还很太不没我你您他她它们这那哪谁啥吗呢吧啊呀哦嗯哈嘛哎唉诶喔噢咯啦么之其而但或及把被给让跟对从到向"
    "为以于因所如若则且再才只便将要会能可想说去来做用得地个些每几多少怎样什"
)
"""Characters of grammar: a pair that holds one crosses a word's edge or says little."""

_EVERYDAY_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定"
    "天分还进好小部其些主样理心她本前开但因只从想实日者意无力它与长把机十第公此已工使情明性知全三又关点正外将两高间由问很最重并物手应向头文体相见被什二等或新己"
    "身果加月话合回特代内信表化老给世位次度门任常先通教儿原声提立及比员解水名真处走各入几口认条平气题活更别打女变四总何电数安少报才结反受目太量再感做接必场件计"
    "管期直指许保至形便空展五书非则听白却光放强像难思完设式色路记品住告求程边该交取拉格望觉共确师今切让识候带笔吃喝早晚午快慢远近买卖送找拿换写读坐站睡忙累"
    "怕爱笑哭请谢帮讲谈谁呢吧吗啊够越每另试挺块钱朋友东西星件班课饭菜字句页六七八九百千万零半双亲热冷干净整齐准备清楚容易简单"
)
"""The characters of most of ordinary talk: a pair of two of them tells less than a rarer one."""

_PAIRS_ZH = """
好的 没有 没事 没问 问题 题不 谢谢 感谢 辛苦 明白 收到 知道 道了 哈哈 太好 真好 真是 真棒 确实 当然 其实 然后 所以 因为 但是 不过 可以
觉得 感觉 看看 这样 那样 现在 今天 明天 昨天 时候 一下 一点 一个 一起 有点 已经 还是 或者 如果 应该 可能 需要 什么 怎么 为什 大家 自己
东西 事情 加油 不错 厉害 恭喜 开心 高兴 喜欢 希望 别担 担心 放心 记得 非常 特别 比较 最近 以前 以后 之前 之后 刚才 刚刚 马上 终于 居然
果然 顺便 对了 行吧 好啊 好呀 早上 晚上 下午 上午 中午 里面 外面 上面 下面
"""

_EMPTY_PAIRS_ZH = frozenset(_PAIRS_ZH.split())
EMPTY = frozenset(terms(_EMPTY_EN))
EVERYDAY = frozenset(terms(_EVERYDAY_EN)) - EMPTY

_CJK_TERM = re.compile(f"[{CJK}]{{1,2}}")
_PAIR_WORTH = (0.4, 0.3, 0.15)
"""Worth of a pair with none, one or two everyday characters. A word of four characters gives three pairs."""


@lru_cache(maxsize=65_536)
def information(term: str) -> float:
    """Return what covering `term` is worth, from 0 (grammar, greetings) to 1.2 (numbers)."""
    if _CJK_TERM.fullmatch(term):
        empty = term in _EMPTY_PAIRS_ZH or not _EMPTY_HAN.isdisjoint(term)
        return 0.0 if empty else _PAIR_WORTH[sum(char in _EVERYDAY_HAN for char in term)] * len(term) / 2
    if term in EMPTY or (len(term) == 1 and not term.isdigit()):
        return 0.0
    if term.isdigit():
        return 1.2
    return (0.5 if term in EVERYDAY else 1.0) * min(1.0, 0.4 + 0.1 * len(term))


CROSSING_WEIGHT = 0.3
"""Weight in a search of a CJK pair with a character of grammar in it: most cross a word's edge, but 地址 and 用户 do not."""


@lru_cache(maxsize=65_536)
def search_weight(term: str) -> float:
    """Return how much finding `term` says by itself, from 0 (grammar) to 1; how rare it is, the index knows better."""
    if _CJK_TERM.fullmatch(term):
        if term in _EMPTY_PAIRS_ZH or term in _EMPTY_HAN:
            return 0.0
        return 1.0 if _EMPTY_HAN.isdisjoint(term) else CROSSING_WEIGHT
    return 0.0 if term in EMPTY else 1.0
