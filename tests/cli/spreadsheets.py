"""Tables of messages as spreadsheets, databases and libraries write them, and messages in other languages."""

import csv
import io
import itertools
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

from skellipsoid.datasets import load_assistant_intents

REAL = Path(__file__).parents[3] / "shared" / "data" / "real"
LANGUAGES = {
    "German": """Wo ist meine Bestellung?|Ich möchte mein Paket zurückschicken
Wie hoch ist die Gebühr für Überweisungen?|Können Sie mir helfen?|Die Größe passt nicht, ich hätte gern 42
Wann öffnet die Filiale in Köln?|Grüß Gott, ich habe eine Frage|Rechnung nochmal schicken bitte
Das Gerät lässt sich nicht einschalten|Schönen Tag noch|Straße und Hausnummer stimmen nicht
Bitte ändern Sie meine E-Mail-Adresse|Ist das für Anfänger geeignet?|Mein Gutschein funktioniert nicht
Danke, tschüss|Kann ich am Samstag abholen?|Ich würde gern kündigen|Wie viel kostet der Versand nach Österreich?
Ja, genau so|Nein danke""",
    "French": """Où est ma commande ?|Je voudrais annuler ma réservation|Ça ne marche pas
Quel est le délai de livraison ?|J'ai été débité deux fois|Merci beaucoup, à bientôt
Pouvez-vous me rappeler demain matin ?|L'écran est cassé|Je n'ai pas reçu mon colis|Comment créer un compte ?
C'est trop cher|Où se trouve la boutique la plus proche ?|La taille ne va pas, c'est trop serré
Est-ce que c'est remboursé ?|Bonjour, j'ai un problème|Garçon de café à Nîmes|Mon numéro a changé
À quelle heure fermez-vous ?|Je préfère payer par chèque|Oui, s'il vous plaît""",
    "Polish": """Gdzie jest moje zamówienie?|Chcę odwołać rezerwację|Paczka nie dotarła
Ile kosztuje wysyłka do Łodzi?|Dzień dobry, mam pytanie|Hasło nie działa|O której jutro otwieracie?
Potrzebuję faktury|Dziękuję bardzo|Rozmiar jest za mały|Czy mogę zapłacić kartą?|Zepsuł mi się telefon
Pobrano opłatę dwa razy|Do widzenia|Chciałbym porozmawiać z konsultantem|Czy jest inny kolor?|Tak, zgadza się
Jeszcze nie|Zmienić adres dostawy|Zamów taksówkę na szóstą""",
    "Turkish": """Siparişim nerede?|Rezervasyonumu iptal etmek istiyorum|Paket gelmedi
İstanbul'a kargo ücreti ne kadar?|Günaydın, bir sorum var|Şifre çalışmıyor|Yarın saat kaçta açılıyorsunuz?
Fatura lazım|Çok teşekkürler|Beden çok küçük|Kartla ödeyebilir miyim?|Telefonum bozuldu|İki kez ücret alındı
Görüşürüz|Bir yetkiliyle görüşmek istiyorum|Başka renk var mı?|Evet, doğru|Henüz değil
Teslimat adresini değiştir|Aboneliği nasıl iptal ederim?""",
    "Russian": """Где мой заказ?|Хочу отменить бронь|Посылка не пришла|Сколько стоит доставка в Казань?
Добрый день, у меня вопрос|Пароль не работает|Во сколько вы завтра открываетесь?|Нужен счёт|Большое спасибо
Размер слишком мал|Можно оплатить картой?|Сломался телефон|Деньги списали два раза|До свидания
Хочу поговорить с человеком|Есть другой цвет?|Да, верно|Ещё нет|Изменить адрес доставки|Как расторгнуть договор?""",
    "English with quotes": """Where is my “order”?|I don’t know my PIN|It says “payment declined”
What’s the fee?|He said “later”|Cancel it – please|My card’s expired|“Track parcel” doesn’t work|Can’t log in…
I’d like a refund|The button “Pay now” is grey|You’re closed today?|What does “pending” mean?|It’s too small
That’s all|Let’s talk to a person|Isn’t there another colour?|Yes, that’s right|Not yet…|My address isn’t right""",
}
LANGUAGES = {language: text.replace("\n", "|").split("|") for language, text in LANGUAGES.items()}
#: What spreadsheets call the columns, and what stands between the cells of a CSV file there.
COUNTRIES = {
    "English": (("message", "label"), ",", "cp1252"),
    "German": (("Nachricht", "Kategorie"), ";", "cp1252"),
    "French": (("message", "catégorie"), ";", "cp1252"),
    "Polish": (("text", "label"), ";", "cp1250"),
}


class Case(NamedTuple):
    """A file: how it is called, what it holds, and what is to be read in it."""

    name: str
    content: bytes
    #: Texts with their labels; with ``None`` where the file has one column.
    rows: list[tuple[str, str | None]]
    names: dict[str, Any]


def real_messages() -> list[tuple[str, str]]:
    """Labelled messages of users, or of the shipped corpus where there are none."""
    found = []
    for path in sorted(REAL.glob("*train.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found += [(" ".join(text.split()), label) for text, label in list(csv.reader(file))[1:]]
    corpus = load_assistant_intents()
    found += list(zip(corpus.data.tolist(), map(str, corpus.target.tolist()), strict=True))
    return list(dict.fromkeys((text, label) for text, label in found if text and label))


def messages_of(language: str, n: int, rng: random.Random) -> list[tuple[str, str]]:
    """Messages of a language with labels; numbers make more of them different."""
    ways = ["{}", "{} ({})", "{} – nr. {}" if "quotes" in language else "{}, {}"]
    found = []
    for i in range(n):
        text = rng.choice(LANGUAGES[language])
        label = f"topic_{LANGUAGES[language].index(text) % 6}"
        found.append((ways[i % 3].format(text, rng.randrange(100, 999)), label))
    return found


def decorated(rows: list[tuple[str, str]], rng: random.Random, *, breaks: bool = True) -> list[tuple[str, str]]:
    """Give some messages quotes, commas, semicolons and line breaks."""
    ways = ["{}", "{}", "{}", "{}, please", 'he said "{}"', '"{}"', "hello; {}", '"{}", she said', "1 | {}"]
    ways += ["hello,\n{}", 'it says:\n"{}"'] if breaks else []
    return [(rng.choice(ways).format(text), label) for text, label in rows]


def written(rows: list[tuple[str, ...]], delimiter: str, *, end: str = "\r\n", **options: Any) -> str:
    """Write rows of CSV."""
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator=end, **options).writerows(rows)
    return file.getvalue()


def excel_tabbed(rows: list[tuple[str, ...]]) -> str:
    """Write rows as Excel's *Text* and *Unicode Text*: cells with commas have quotes, too."""

    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in '\t\n",') else text

    return "".join("\t".join(map(cell, row)) + "\r\n" for row in rows)


def _as_r(rows: list[tuple[str, ...]], delimiter: str, *, header: bool) -> str:
    """Write rows as R: all strings in quotes, and a first column of row names."""
    lines = []
    for number, row in enumerate(rows, start=not header):
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in row]
        lines.append(delimiter.join(['""' if header and not number else f'"{number}"', *quoted]))
    return "\n".join(lines) + "\n"


def _as_mysql(rows: list[tuple[str, ...]], delimiter: str) -> str:
    r"""Write rows as ``FIELDS ENCLOSED BY '"'``: a quote in a cell is ``\"``."""
    quoted = [['"' + cell.replace("\\", "\\\\").replace('"', '\\"') + '"' for cell in row] for row in rows]
    return "".join(delimiter.join(row) + "\n" for row in quoted)


def _flat(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave line breaks and tabs out, as Google Sheets and databases do in files between tabs."""
    return [tuple(" ".join(cell.split()) for cell in row) for row in rows]


#: Names of writers, with what they give for rows that begin with a header or do not.
def _writers(header: bool, delimiter: str, country: str, rng: random.Random) -> dict[str, Any]:
    _, own, legacy = COUNTRIES[country]
    return {
        "excel": lambda rows: (written(rows, own).encode(legacy, "replace"), "csv"),
        "excel-utf8": lambda rows: (written(rows, own).encode("utf-8-sig"), "csv"),
        "excel-text": lambda rows: (excel_tabbed(rows).encode(legacy, "replace"), "txt"),
        "excel-unicode": lambda rows: (excel_tabbed(rows).encode("utf-16"), "txt"),
        "pandas": lambda rows: (written(rows, delimiter, end="\n").encode(), rng.choice(["csv", "tsv"])),
        "pandas-all": lambda rows: (
            written(rows, delimiter, end="\n", quoting=csv.QUOTE_ALL).encode(),
            rng.choice(["csv", "tsv"]),
        ),
        "r": lambda rows: (_as_r(rows, delimiter, header=header).encode(), "csv" if delimiter != "\t" else "tsv"),
        "mysql": lambda rows: (_as_mysql(rows, delimiter).encode(), "csv" if delimiter != "\t" else "tsv"),
        "postgres": lambda rows: (written(rows, delimiter, end="\n").encode(), "csv"),
        "google": lambda rows: (written(rows, ",").encode(), "csv"),
        "google-tsv": lambda rows: ("\r\n".join("\t".join(row) for row in _flat(rows)).encode(), "tsv"),
        "numbers": lambda rows: (written(rows, own).encode(), "csv"),
    }


def tables(n: int, seed: int = 0) -> list[Case]:
    """Tables of real messages: writers, delimiters, countries, headers, one column, short rows, in turn."""
    rng = random.Random(seed)
    messages = real_messages()
    ways = list(itertools.product(range(12), ",;|\t", COUNTRIES, (True, False), ("two", "two", "one", "more", "short")))
    rng.shuffle(ways)
    return [_table(number, way, messages, rng) for number, way in enumerate(ways[:n])]


def _table(number: int, way: tuple[Any, ...], messages: list[tuple[str, str]], rng: random.Random) -> Case:
    which, delimiter, country, header, shape = way
    names = COUNTRIES[country][0]
    n = rng.choice([12, 30, 80])
    # Each label several times, as in a sheet of one bot.
    labels = rng.sample(sorted({label for _, label in messages}), 5)
    pool = [row for row in messages if row[1] in labels]
    rows = decorated(rng.sample(pool, min(n, len(pool))), rng)
    if country != "English" and which < 4:
        rows += messages_of(country, n // 3, rng)
    if which in (0, 2):  # of what a code page lacks, Excel makes question marks
        legacy = COUNTRIES[country][2]
        rows = [(t.encode(legacy, "ignore").decode(legacy), label) for t, label in rows]
        rows = [row for row in rows if row[0].strip()]
    writer = list(_writers(header, delimiter, country, rng).items())[which]
    if writer[0] == "google-tsv":
        rows = _flat(rows)
    options = {"text_column": names[0], "label_column": names[1]} if header else {}
    expected: list[tuple[str, str | None]] = list(rows)
    if shape == "one":
        sheet, expected = [(text,) for text, _ in rows], [(text, None) for text, _ in rows]
        options = {"text_column": names[0]} if header else {}
        head = names[:1]
    elif shape in ("more", "short") and header:
        sheet, head = [(str(i), text, label, "") for i, (text, label) in enumerate(rows)], ("Nr", *names, "note")
        if shape == "more":
            sheet = [(*row[:3], f"seen, {i}" if i % 3 else "") for i, row in enumerate(sheet)]
    else:
        sheet, head = list(rows), names
    content, ending = writer[1]([head, *sheet] if header else sheet)
    if shape == "short" and header and which < 4:
        content = content.replace(b";\r\n", b"\r\n")
    if writer[0] == "r" and not header:
        options = {"text_column": "2"} | ({} if shape == "one" else {"label_column": "3"})
    name = f"{number}-{writer[0]}-{shape}-{country}-{header}-{ord(delimiter)}.{ending}"
    return Case(name, content, expected, options)


#: What stands for true and for the months in a cell.
_TRUE = {"German": "WAHR", "Polish": "PRAWDA"}
_MONTHS = {"German": "{:02}. Feb", "Polish": "{:02}.lut"}


def as_spreadsheet(cell: str, country: str) -> str:
    """Give a cell as a spreadsheet shows it once it has opened a CSV file: numbers, dates and truths are its own."""
    if re.fullmatch(r"[-+]?\d{12,}", cell) or re.fullmatch(r"\d+e\d+", cell):
        return f"{float(cell):.5E}".replace(".", ",")
    if re.fullmatch(r"[-+]?\d+", cell):
        return str(int(cell))
    if found := re.fullmatch(r"(\d{1,2})[/.]0?2", cell):
        return _MONTHS[country].format(int(found[1]))
    return _TRUE[country] if cell.lower() == "true" else cell[:32_767]


def saved_csv(content: bytes, country: str) -> bytes:
    """Give a CSV file as Excel saves it as CSV in a country, in its encoding: what that lacks is a question mark."""
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    shown = [tuple(as_spreadsheet(cell, country) for cell in row) for row in rows]
    _, delimiter, encoding = COUNTRIES[country]
    return written(shown, delimiter).encode(encoding, "replace")
