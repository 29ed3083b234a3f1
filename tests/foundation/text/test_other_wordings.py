"""Test paraphrased questions and remember or forget requests in fifteen languages."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.languages.questions import is_about_everything, is_bare_question

EVERYTHING = """
Give me a rundown of what you've got on me|Spill everything you know about me|If you had to describe me, what would you say?
Kannst du mich kurz beschreiben?|Zähl mal auf, was du über mich weißt|Welche Infos hast du zu mir?
Hazme un resumen de quién soy|¿Qué tanto sabes de mí?|Dime todo lo que recuerdes
Fais mon portrait|Tu sais quoi de moi au juste ?|Rappelle-moi qui je suis
描述一下我这个人|盘点一下你记得的关于我的事|你掌握了我的哪些资料?
Fale de mim|Quanto você me conhece?|Quanto mi conosci?|Cosa hai in memoria su di me?
私の情報を教えて|僕ってどんな人だと思う?|너는 나를 얼마나 알아?|내가 어떤 사람인지 말해줘
Какая информация обо мне у тебя есть?|Изложи вкратце, что тебе обо мне известно|Ile o mnie wiesz?|Wypisz wszystko, co o mnie pamiętasz
Hoe zou je me omschrijven?|Wat staat er in je geheugen over mij?|Hakkımda ne kadar bilgin var?|Bana kendimi anlat
ماذا حفظت عني؟|إلى أي مدى تعرفني؟|मेरे बारे में क्या जानकारी है?|तुम मुझे कितना जानते हो?
"""
SOMETHING = """
What did my boss say about me?|Who told me about the film?|Show me my calendar|Do you know my name?
Was hat mein Chef über mich gesagt?|Wer bin ich im Spiel?|¿Qué sabes de mi hermana?|¿Qué dijo mi jefe sobre mí?
De quoi parles-tu ?|Que dit mon chef de moi ?|你知道我在哪里上班吗?|老板对我说了什么?|谁认识我?
私は誰に会いますか|私の犬のことを教えて|내가 누구를 만나?|Кто говорил со мной?|Что ты знаешь о себе?
Co szef o mnie powiedział?|Wat zei mijn baas over mij?|Patronum hakkımda ne dedi?|ماذا قال مديري عني؟|अपने बारे में बताओ
"""
REMEMBER = [
    ("Please remember: ich bin Linkshänder", "ich bin Linkshänder"),
    ("Remember for next time that I prefer tea", "I prefer tea"),
    ("Note que je suis gaucher", "je suis gaucher"),
    ("Rappelle-toi : mon code est 12", "mon code est 12"),
    ("Ich möchte, dass du dir merkst, dass ich in Gent wohne", "ich in Gent wohne"),
    ("Behalte bitte im Kopf, dass ich nachts arbeite", "ich nachts arbeite"),
    ("Importante: soy epiléptico", "soy epiléptico"),
    ("Mi raccomando, ricordati che non lavoro il lunedì.", "non lavoro il lunedì."),
    ("你能记住我儿子叫小乐吗", "我儿子叫小乐"),
    ("备注:我41岁", "我41岁"),
    ("Я хочу, чтобы ты запомнил, что мне 41", "мне 41"),
    ("Não deixe de lembrar que eu não como dendê.", "eu não como dendê."),
    ("Je mag onthouden dat mijn kat Bommel heet.", "mijn kat Bommel heet."),
    ("저는 땅콩 알레르기가 있다는 걸 기억해 주세요.", "저는 땅콩 알레르기가 있다는 걸"),
    ("أريدك أن تتذكر أن عمري 41", "عمري 41"),
    ("ध्यान रहे कि मेरी पत्नी को धूल से एलर्जी है", "मेरी पत्नी को धूल से एलर्जी है"),
]
FORGET = [
    ("Scratch what I said about the coffee, forget it.", "the coffee"),
    ("Could you wipe my phone number from your memory?", "my phone number"),
    ("Can you forget the thing about the loan?", "the thing about the loan"),
    ("Ich möchte, dass du meine Adresse vergisst", "meine Adresse"),
    ("Das mit der Scheidung kannst du vergessen", "der Scheidung"),
    ("¿Puedes olvidar lo del préstamo?", "préstamo"),
    ("Je veux que tu oublies mon adresse", "mon adresse"),
    ("把我的电话号码删掉", "我的电话号码"),
    ("我希望你忘记我的地址", "我的地址"),
    ("Apaga meu aniversário da memória", "meu aniversário"),
    ("Lascia perdere quello che ti ho detto sul mutuo.", "mutuo"),
    ("誕生日を記憶から削除して", "誕生日"),
    ("Удали мой день рождения из памяти", "мой день рождения"),
    ("Usuń moje urodziny z pamięci", "moje urodziny"),
    ("Ik wil dat je mijn adres vergeet", "mijn adres"),
    ("Adresimi unutmanı istiyorum", "Adresimi"),
]
NO_REQUEST = """
Olvidé mis llaves|Lösche die dritte Zeile|Borra la última frase|Supprime la dernière phrase|删除第三行|Oublié mes clés|Forget my address?
Meine Oma vergisst alles|Ich habe meinen Schlüssel vergessen|My doctor told me to remember my pills|我忘了带钥匙
"""
QUESTIONS = """
any idea where i parked|wie wird das wetter morgen|qué metro me deja en el centro|quel train je prends|c'est quoi une caldeira
che treno prendo|на какой поезд мне сесть|w jakim miesiącu jest miodobranie
köpeğim kaç yaşında|hamsi mevsimi ne zaman başlar|मैं कहाँ रहता हूँ|내 차 어디 있어
"""
STATEMENTS = """
Где я живу, там тихо|Как я люблю чай|В какой-то момент я уехал|Nerede olduğunu biliyorum|क्या बात है|누가 왔어|기차를 타야 해|我知道他住在哪里
我没有什么过敏|どこでも眠れます|C'est qui compte|Habe ich schon erledigt|Który raz to mówię
"""


def _lines(block: str) -> list[str]:
    return block.strip().replace("\n", "|").split("|")


@pytest.mark.parametrize("query", _lines(EVERYTHING))
def test_paraphrased_question_about_everything_is_recognized(query: str) -> None:
    assert is_about_everything(query)


@pytest.mark.parametrize("query", _lines(SOMETHING))
def test_question_about_others_is_not_about_everything(query: str) -> None:
    assert not is_about_everything(query)


@pytest.mark.parametrize(("text", "subject"), REMEMBER)
def test_paraphrased_remember_request_is_recognized(text: str, subject: str) -> None:
    request = memory_request(text)
    assert request is not None
    assert (request.kind, request.subject) == ("remember", subject)


@pytest.mark.parametrize(("text", "subject"), FORGET)
def test_paraphrased_forget_request_is_recognized(text: str, subject: str) -> None:
    request = memory_request(text)
    assert request is not None
    assert (request.kind, request.subject) == ("forget", subject)


@pytest.mark.parametrize("text", _lines(NO_REQUEST))
def test_text_that_only_resembles_a_request_is_not_recognized(text: str) -> None:
    assert memory_request(text) is None


@pytest.mark.parametrize("text", _lines(QUESTIONS))
def test_question_without_a_mark_in_other_shapes_is_recognized(text: str) -> None:
    assert is_bare_question(text)


@pytest.mark.parametrize("text", _lines(STATEMENTS))
def test_statement_with_a_question_word_is_no_question(text: str) -> None:
    assert not is_bare_question(text)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("please forget everything about jonas", "jonas"),
        ("forget anything i told you about jonas", "jonas"),
        ("forget everything to do with jonas", "jonas"),
        ("wipe all you have on jonas", "jonas"),
        ("forget what I said about my job", "my job"),
        ("vergiss was ich über jonas gesagt habe", "jonas"),
        ("olvida lo que te dije sobre mi trabajo", "mi trabajo"),
        ("oublie ce que j'ai dit sur Jonas", "Jonas"),
        ("забудь, что я говорил о Марине", "Марине"),
        ("bitte lösche alles über Jonas", "Jonas"),
        ("vergiss alles was du über jonas weißt", "jonas"),
        ("borra todo lo que sabes de jonas", "jonas"),
        ("oublie tout ce que je t'ai dit sur jonas", "jonas"),
        ("apaga tudo sobre jonas", "jonas"),
        ("cancella tutto quello che sai su jonas", "jonas"),
        ("wis alles over jonas", "jonas"),
        ("usuń wszystko o Jonasie", "Jonasie"),
        ("забудь всё о Марине", "Марине"),
        ("jonas hakkında her şeyi unut", "jonas"),
        ("احذف كل ما تعرفه عن يوناس", "يوناس"),
        ("योनास के बारे में सब कुछ भूल जाओ", "योनास"),
        ("요나스에 대해 전부 잊어", "요나스에"),
        ("ヨナスのことは全部忘れて", "ヨナス"),
        ("忘掉约翰的所有事情", "约翰"),
        ("忘记关于约翰的一切", "约翰"),
    ],
)
def test_request_to_forget_all_about_a_person_is_recognized(text: str, subject: str) -> None:
    assert memory_request(text) == ("forget", subject, True)


@pytest.mark.parametrize(
    "text", ["forget my address", "forget about my address", "vergiss meine Adresse", "olvida mi dirección", "忘记我的地址"]
)
def test_request_to_forget_a_thing_does_not_mean_everything_about_it(text: str) -> None:
    request = memory_request(text)
    assert request is not None
    assert not request.about
