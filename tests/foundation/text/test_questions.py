"""Test the classification of texts as questions, remember requests or forget requests."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.languages.memory_requests import memory_request
from agent_memory.foundation.text.languages.questions import asks_for_questions, is_about_everything, is_bare_question


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "what is my name",
        "Hey! What's my dog called? Thanks!",
        "Do you know a good dentist?",
        "我住在哪里？",
        "我叫什么名字",
        "Wann kommt meine Schwester?",
        "¿Cuándo viene mi hermana?",
        "Où habite mon frère ?",
        "Onde moro?",
        "Как меня зовут?",
        "私の名前は何ですか？",
        "내 이름이 뭐야?",
        "Come mi chiamo?",
        "Waar woon ik?",
        "Jak mam na imię?",
        "Benim adım ne?",
        "ما اسمي؟",
        "मेरा नाम क्या है?",
    ],
)
def test_bare_question_is_recognized(text: str) -> None:
    assert is_bare_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Rome, did you know?",
        "Can you recommend a restaurant? I'm vegan.",
        "When I was young I lived in Rome.",
        "What a day!",
        "My sister is called Ana.",
        "What can I eat, I'm vegan?",
        "我搬到罗马了，你知道吗？",
        "Ich ziehe nach Rom, weißt du das?",
        "Me mudé a Roma, ¿lo sabías?",
        "Oslo",
        "",
        "thanks!",
        "何か食べた",
    ],
)
def test_text_that_states_something_is_no_bare_question(text: str) -> None:
    assert not is_bare_question(text)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Remember that I'm vegan", "I'm vegan"),
        ("Please remember: my flight is at 9.", "my flight is at 9."),
        ("Don't forget that my flight is at 9", "my flight is at 9"),
        ("Can you please remember that I hate olives?", "I hate olives"),
        ("Remember my sister is Ana", "my sister is Ana"),
        ("请记住我对花生过敏", "我对花生过敏"),
        ("Recuerda que soy vegano", "soy vegano"),
        ("Merk dir bitte, dass ich frei habe", "ich frei habe"),
        ("Souviens-toi que je suis végane", "je suis végane"),
        ("Lembre-se de que sou vegano", "sou vegano"),
        ("Ricorda che sono vegano", "sono vegano"),
        ("Onthoud dat ik veganist ben", "ik veganist ben"),
        ("Запомни, что я веган", "я веган"),
        ("私はビーガンだと覚えておいて", "私はビーガンだ"),
        ("Zapamiętaj, że jestem weganinem", "jestem weganinem"),
        ("내가 비건이라는 걸 기억해 줘", "내가 비건이라는 걸"),
        ("Vegan olduğumu unutma", "Vegan olduğumu"),
        ("Il faut que tu retiennes que je suis végan", "je suis végan"),
        ("Il est important que tu saches que je suis végan", "je suis végan"),
        ("Es necesario que recuerdes que soy vegano", "soy vegano"),
        ("Voglio che ti ricordi che sono vegano", "sono vegano"),
        ("Você tem que lembrar que sou vegano", "sou vegano"),
        ("Ich will, dass du weißt, dass ich vegan bin", "ich vegan bin"),
        ("你需要记住我吃素", "我吃素"),
        ("Remember to call Ana", "Remember to call Ana"),
    ],
)
def test_remember_request_is_recognized(text: str, subject: str) -> None:
    request = memory_request(text)
    assert request is not None
    assert (request.kind, request.subject) == ("remember", subject)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("please forget that", "that"),
        ("forget what I said about my job", "my job"),
        ("Please forget my phone number, thanks", "my phone number"),
        ("Delete everything you know about my ex", "my ex"),
        ("请忘记我说的关于我前女友的事", "我前女友的事"),
        ("Olvida lo que dije sobre mi trabajo", "mi trabajo"),
        ("Vergiss meine Adresse", "meine Adresse"),
        ("Oublie ce que j'ai dit sur mon travail", "mon travail"),
        ("Esqueça o que eu disse sobre o meu trabalho", "o meu trabalho"),
        ("Забудь мой адрес", "мой адрес"),
        ("私の仕事のことは忘れてください", "私の仕事"),
        ("내 주소 잊어 줘", "내 주소"),
        ("Zapomnij mój adres", "mój adres"),
        ("Adresimi unut", "Adresimi"),
        ("Vergeet mijn adres", "mijn adres"),
        ("Dimentica il mio indirizzo", "il mio indirizzo"),
    ],
)
def test_forget_request_is_recognized(text: str, subject: str) -> None:
    request = memory_request(text)
    assert request is not None
    assert (request.kind, request.subject) == ("forget", subject)


@pytest.mark.parametrize(
    "text",
    [
        "Forget it",
        "Forget the marathon, I want to swim now.",
        "I remember that day",
        "Remember when we went to Rome?",
        '"Remember that I am vegan", she said',
        "I forgot my keys",
        "My sister called. Please remember that she's allergic.",
        "delete the file",
        "She told me to forget my phone number",
        "> forget my name",
        "Ich habe meinen Schlüssel vergessen",
        "Do you remember my name?",
        "",
        "Remember?",
    ],
)
def test_text_without_a_request_is_not_recognized_as_one(text: str) -> None:
    assert memory_request(text) is None


@pytest.mark.parametrize(
    "query",
    [
        "What do you know about me?",
        "Who am I?",
        "Tell me everything you remember",
        "summarize me",
        "Hey, what do you know about me so far?",
        "So who am I, according to you?",
        "what's in your memory about me",
        "What facts do you have stored about me?",
        "List everything you have saved on me.",
        "Welche Daten hast du über mich gespeichert?",
        "¿Qué cosas tienes guardadas sobre mí?",
        "Quelles informations as-tu enregistrées sur moi ?",
        "Quais informações tens guardadas sobre mim?",
        "Che informazioni hai salvato su di me?",
        "Wat heb je allemaal over mij onthouden?",
        "Can you tell me what you know about me, please?",
        "你知道我的什么？",
        "我是谁？",
        "告诉我你记得的一切",
        "总结一下我",
        "¿Qué sabes de mí?",
        "¿Quién soy?",
        "Was weißt du über mich?",
        "Wer bin ich?",
        "Fass mich zusammen",
        "Que sais-tu de moi ?",
        "Qui suis-je ?",
        "O que você sabe sobre mim?",
        "Quem sou eu?",
        "Что ты знаешь обо мне?",
        "Кто я?",
        "私について何を知っていますか？",
        "私は誰ですか？",
        "나에 대해 뭘 알고 있어?",
        "내가 누구야?",
        "Cosa sai di me?",
        "Chi sono?",
        "Wat weet je over mij?",
        "Wie ben ik?",
        "Co o mnie wiesz?",
        "Kim jestem?",
        "Hakkımda ne biliyorsun?",
        "Ben kimim?",
        "ماذا تعرف عني؟",
        "من أنا؟",
        "मेरे बारे में आप क्या जानते हैं?",
        "मैं कौन हूँ?",
    ],
)
def test_question_about_everything_is_recognized(query: str) -> None:
    assert is_about_everything(query)


@pytest.mark.parametrize(
    "query",
    [
        "What do you like about me?",
        "What do my friends know about me?",
        "What do I have on me?",
        "Does my boss know about me?",
        "Was wissen meine Eltern von mir?",
        "¿Qué sabe mi madre de mí?",
        "what do you remember about my trip?",
        "Who am I meeting on Friday?",
        "Tell me about Rome",
        "What is my job?",
        "Wer bin ich für Anna?",
        "ok",
        "",
    ],
)
def test_question_about_something_is_not_about_everything(query: str) -> None:
    assert not is_about_everything(query)


@pytest.mark.parametrize(
    "query",
    [
        "What did I ask you?",
        "¿Qué te pregunté?",
        "Was habe ich gefragt?",
        "О чём я спрашивал?",
        "我问过你什么？",
        "何を質問しましたか？",
        "뭘 물어봤지?",
    ],
)
def test_question_about_earlier_questions_is_recognized(query: str) -> None:
    assert asks_for_questions(query)


@pytest.mark.parametrize("query", ["Where do I live?", "¿Dónde vivo?", "访问量是多少？", "犬の名前は？"])
def test_other_question_is_not_about_earlier_questions(query: str) -> None:
    assert not asks_for_questions(query)


@pytest.mark.parametrize("text", ["Sono allergica al polline.", "Mi chiamo Luca", "Kiedy byłem mały mieszkałem w Łodzi.", "我哪儿也没去"])
def test_statement_with_a_question_prefix_is_no_bare_question(text: str) -> None:
    assert not is_bare_question(text)
