"""Test questions without a question mark, and statements that start like questions."""

from __future__ import annotations

import pytest

from agent_memory.foundation.text.languages.questions import is_bare_question

QUESTIONS = """
is Prague nice in autumn
are dogs allowed on the train
is oat milk good for dogs
was grandpa good at chess
will dad come on sunday
can rabbits eat parsley
has anyone fixed the bug
are the shops open today
is there milk left
does anyone sell used bikes
you think its worth it
sabes si hace calor en Cadiz
no sabes si abren hoy
crees que vale la pena
hay algún bar por aquí
tu crois que l'électrique ça vaut le coup
crois-tu qu'il va pleuvoir
est-ce ouvert demain
hast du meine adresse noch
glaubst du das lohnt sich
kennst du einen guten zahnarzt
soll ich kündigen
ist der laden noch offen
weet je mijn adres nog
denk je dat het de moeite waard is
heb je mijn sleutels gezien
не знаешь будет ли дождь
стоит ли туда ехать
как думаешь успею
думаешь успею
você acha que vale a pena
sabe se vai chover
será que chove amanhã
sai se piove domani
pensi che ne valga la pena
secondo te piove domani
nie wiesz czy będzie padać
myślisz że warto
jak myślisz zdążę
تعتقد أن الأمر يستحق
تعرف متى يفتح المحل
क्या बारिश होगी
तुम्हें लगता है कि यह सही है
What wine goes with salmon
what cheese fits to a red wine
Which train goes to Lisbon
which shoes do I wear for running
What helps against a headache
what did i eat yesterday
which should we take
What time does the shop close
What is the capital of Peru
Who lives next to me
Who wrote the book about whales
Who knows my sister
Where do my parents live
Where did I put the spare key
When does my plane leave
When is my dentist appointment
Why did I leave the choir
How do I get to the harbour
How many people come to dinner
How long does rice have to cook
How much does the ticket cost
Which of my friends plays chess
whose bike is in the hall
Do I have any allergies
Did Anna call
Is there a bus to the lake
Should I buy the blue one
Can you tell me a joke
can u tell me how to get coffee stains out of wool
so what do I do about the leak
ok and how long does it take
any idea when the pharmacy opens
anyone know a good plumber
u got any tips against moths
mind if I ask about the rent
wondering if the shop is open on Sunday
remind me what the code of the gate is
tell me how to boil an egg
isn't that too much sugar
how come the sky is blue
What kind of music does Tom like
how old is my daughter
what's the name of my dentist
Which doctor treats my knee
Was passt zu Lachs
Welcher Wein passt zu Lachs
Was hilft gegen Kopfschmerzen
Wo wohnt meine Schwester
Wie heißt mein Hund
Wann fährt mein Zug nach Bonn
Welche Farbe hat mein Auto
Wer kommt am Freitag
Warum schläft mein Sohn so schlecht
Wie viel kostet die Miete
Womit fahre ich zur Arbeit
Hast du meine Nummer
Qué vino va con el salmón
Dónde vive mi hermana
Cuándo llega mi tren
Cómo se llama mi perro
Cuántos hijos tengo
Quién toca el piano
Cuál es mi color favorito
A qué hora sale el avión
Quel vin va avec le saumon
Où habite ma sœur
Comment s'appelle mon chien
Quand part mon train
Qui joue du piano
Combien coûte le billet
Est-ce que j'ai des allergies
Pourquoi mon fils dort mal
Que vinho combina com salmão
Onde mora a minha irmã
Quantos filhos eu tenho
Como se chama o meu cachorro
Quem toca piano
Qual é a minha cor favorita
A que horas sai o avião
Quale vino va con il salmone
Dove abita mia sorella
Come si chiama il mio cane
Quanti figli ho
Chi suona il pianoforte
Quando parte il mio treno
A che ora parte l'aereo
Welke wijn past bij zalm
Waar woont mijn zus
Hoe heet mijn hond
Wanneer vertrekt mijn trein
Wie speelt piano
Hoeveel kost het kaartje
Wat helpt tegen hoofdpijn
Waarom slaapt mijn zoon slecht
What restaurant did Tom recommend
who plays the drums in my band
Did my sister call
does Tom eat meat
what song did we dance to
wann treffen wir uns
quién escribió ese libro
como me llamo
quem escreveu esse livro
dov'è il mio passaporto
welk bier past bij curry
"""

STATEMENTS = """
what shift i work changes every week
is a nurse
is really nice there
is allergic to nuts
was very good in autumn
are vegan
is called Rex
was called yesterday
will probably be late
can barely come up the stairs
can come on sunday
is my favourite colour
sabes que odio el calor
creo que vale la pena
hay mucho ruido en casa
tu sais que je déteste la pluie
je crois que ça vaut le coup
kannst du vergessen
hast du recht
ich glaube das lohnt sich
ist mein geburtstag
muss man gesehen haben
kann man machen
kan je vergeten
heb je gelijk
вряд ли пойду
я не знаю где ключи
думаю успею
ты не знаешь меня
você sabe que odeio frio
acho que vale a pena
penso che ne valga la pena
so che piove domani
wiesz że nie lubię zupy
myślę że warto
أعتقد أن الأمر يستحق
मुझे लगता है कि यह सही है
What I like most is tea
What I need now is a coffee
What matters to me is honesty
What helps me is a cold shower
What helps against my headache is sleep
What makes me happy is the sea
What happened was my own fault
What goes around comes around
What a day
What a lovely evening with Anna
What nice weather we had
What is important to me is honesty
What was nice was the food
What my sister said was wrong
What people want is peace
What fun we had in Rome
When I was in Rome I met Tom
When it rains I stay at home
When in doubt I ask Anna
When my sister visits we cook
When is not the question but where
Where I live there is no bus
Where there is smoke there is fire
Who dares wins
Who laughs last laughs best
Who is late pays the round
Who knows maybe I move to Oslo
Why I left is a long story
Why not tea
How I met my wife is a long story
How nice of you
How time flies
However you do it I like it
Which is why I left the choir
Which was nice of him
Which reminds me that I have to call Anna
Had I known I would have stayed
Should you need me I am at home
Should it rain we eat inside
Were it not for Anna I would move
Do it tomorrow
Have it your way
Is my favourite too
Will is my best friend
May is my favourite month
Was ich mag ist Tee
Was mir hilft ist Schlaf
Was für ein Tag
Was gut ist kommt wieder
Was hilft ist Schlaf
Wer hat der hat
Wer rastet der rostet
Wie ich schon sagte mag ich Tee
Wie schön dass du da bist
Wo ich wohne fährt kein Bus
Wo gehobelt wird fallen Späne
Wenn es regnet bleibe ich daheim
Wann immer es geht fahre ich Rad
Als ich klein war wohnte ich in Bonn
Lo que más me gusta es el té
Cuando era niño vivía en Lima
Cuando llueve me quedo en casa
Como es tarde me voy a casa
Donde vivo hace mucho calor
Que tengas un buen día
Quien calla otorga
Cuando llega mi hermana cocinamos juntos
Qué bonito es Lima
Ce que j'aime le plus c'est le thé
Quand j'étais petit je vivais à Lyon
Quand il pleut je reste à la maison
Comme il est tard je rentre
Qui va à la chasse perd sa place
Quel beau jour
Où je vis il fait chaud
Quelle chance j'ai eue
O que eu mais gosto é chá
Quando eu era criança morava em Braga
Quando chove eu fico em casa
Como é tarde vou para casa
Onde moro faz muito calor
Quem cala consente
Que bom que você veio
Quando chega a minha irmã cozinhamos juntos
Quello che mi piace di più è il tè
Quando ero piccolo vivevo a Bari
Quando era piccolo viveva a Bari
Quando piove resto a casa
Come ho detto mi piace il tè
Dove vivo fa molto caldo
Chi dorme non piglia pesci
Che bella giornata
Wat ik lekker vind is thee
Wat een dag
Wat mij helpt is slaap
Toen ik klein was woonde ik in Gent
Wie niet waagt die niet wint
Waar ik woon rijdt geen bus
Als het regent blijf ik thuis
Hoe leuk dat je er bent
What Anna cooks is always good
What Tom does is none of my business
What works for me is a list
What happens in Vegas stays in Vegas
Who comes first gets the best seat
Where my parents live it snows
Which means I have to move
Which one I take depends on Anna
Whose idea that was I forgot
How long I waited I do not know
Have a dog and two cats
So does my sister
And so did I
Was a great party yesterday
Somebody stole my bike
Anyone can join our choir
Now and then I play chess
Right now my sister is in Oslo
But my brother is in Bonn
Did the laundry today
Wer früh kommt bekommt den besten Platz
Quien llega tarde paga
Qui dort dîne
Quem chega tarde paga
Chi arriva tardi paga
Wie te laat komt betaalt
"""


def _lines(block: str) -> list[str]:
    return block.strip().splitlines()


@pytest.mark.parametrize("text", _lines(QUESTIONS))
def test_question_without_a_question_mark_is_recognized(text: str) -> None:
    assert is_bare_question(text)


@pytest.mark.parametrize("text", _lines(STATEMENTS))
def test_statement_that_begins_like_a_question_is_no_question(text: str) -> None:
    assert not is_bare_question(text)


def test_samples_include_enough_questions_and_statements() -> None:
    assert min(len(_lines(QUESTIONS)), len(_lines(STATEMENTS))) >= 60


@pytest.mark.parametrize("text", ["What wine goes with salmon.", "What wine goes with salmon, I have white.", "Who lives next to me!"])
def test_question_words_with_a_period_or_more_text_are_a_statement(text: str) -> None:
    assert not is_bare_question(text)
