# SPDX-License-Identifier: Apache-2.0
"""Times o200k encoding against the official tiktoken, one thread each, in turns on the same text, in CPU time.

Prints MB/s and the ratio per kind of text; ends with 1 when a ratio is below --floor.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from o200k_diff import load_tiktoken

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LICENCES = pathlib.Path("/usr/share/common-licenses")
# Common Hindi words; sentences are drawn from them, frequent ones first.
HINDI = """के में की है को से का और एक यह पर ने हैं लिए कि नहीं भी तो ही था हो गया कर इस वह जो अपने थे कुछ
साथ थी बाद किया लोग समय दिन बहुत जब तक अब कहा रहा करने होता सकता उन्होंने वाले जाता सरकार भारत देश काम घर
पानी बात जीवन दुनिया साल बच्चे महिला शिक्षा विद्यालय पुस्तक भाषा हिन्दी संस्कृति इतिहास विज्ञान प्रौद्योगिकी
कंप्यूटर इंटरनेट समाचार राजनीति चुनाव प्रधानमंत्री मंत्रालय न्यायालय संविधान अधिकार कर्तव्य स्वतंत्रता
लोकतंत्र अर्थव्यवस्था बाज़ार व्यापार उद्योग कृषि किसान मौसम वर्षा नदी पहाड़ समुद्र जंगल पर्यावरण प्रदूषण
स्वास्थ्य चिकित्सक अस्पताल दवा रोग भोजन चावल रोटी सब्ज़ी फल दूध चाय मिठाई त्योहार दीपावली होली विवाह परिवार
माता पिता भाई बहन मित्र पड़ोसी गाँव शहर सड़क रेलगाड़ी हवाई जहाज़ यात्रा टिकट होटल संगीत नृत्य फ़िल्म अभिनेता
खिलाड़ी क्रिकेट प्रतियोगिता विजय पराजय प्रयास सफलता असफलता प्रेम क्रोध भय आशा निराशा प्रसन्नता दुःख सुबह दोपहर
शाम रात कल आज परसों सोमवार मंगलवार बुधवार जनवरी फ़रवरी अगस्त सितंबर लाल नीला हरा पीला सफ़ेद काला बड़ा छोटा
लंबा ऊँचा नया पुराना अच्छा बुरा सुंदर कठिन सरल महत्वपूर्ण आवश्यक संभव असंभव विश्वविद्यालय अनुसंधान
अंतरराष्ट्रीय राष्ट्रीय स्थानीय विकास योजना कार्यक्रम समिति सदस्य अध्यक्ष निर्णय समस्या समाधान प्रश्न उत्तर
उदाहरण परिणाम कारण प्रभाव संबंध व्यवस्था प्रणाली उपयोग निर्माण आरंभ अंत पहले दूसरे तीसरे सौ हज़ार लाख करोड़""".split()


def hindi(num_bytes):
    rng = random.Random(3)
    weights = [1 / (i + 3) for i in range(len(HINDI))]
    parts, size = [], 0
    while size < num_bytes:
        words = rng.choices(HINDI, weights, k=rng.randint(5, 18))
        sentence = " ".join(words) + rng.choice(("। ", "। ", "?\n", "।\n\n", ", "))
        parts.append(sentence)
        size += len(sentence.encode())
    return "".join(parts)


def texts():
    prose = "".join(p.read_text() for p in sorted(LICENCES.iterdir()) if not p.is_symlink())
    paths = sorted(p for kind in ("*.cc", "*.h", "*.py") for p in (ROOT / "src").rglob(kind))
    paths += sorted((ROOT / "tools").rglob("*.py"))
    code = "".join(p.read_text() for p in paths if "_tables" not in p.name)
    return {"English prose": prose, "source code": code, "Hindi": hindi(400_000)}


def best_of_oracle(oracle, text, rounds):
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        tokens = oracle.encode_ordinary(text)
        best = min(best, time.thread_time() - start)
    return best, tokens


def checksum(tokens):
    value = 0
    for token in tokens:
        value = (value * 1000003 + token) % 2**64
    return value


def compare(args, oracle, text, folder):
    path = pathlib.Path(folder) / "text"
    path.write_text(text)
    ours, theirs = float("inf"), float("inf")
    for _ in range(args.turns):
        seconds, tokens = best_of_oracle(oracle, text, args.rounds)
        theirs = min(theirs, seconds)
        done = subprocess.run([args.speed, args.ranks, path, str(2 * args.rounds)], check=True,
                              capture_output=True)
        answer = json.loads(done.stdout)
        ours = min(ours, answer["seconds"])
        if answer["checksum"] != checksum(tokens):
            sys.exit("the tokens differ")
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", required=True, help="the program tokenizer_speed")
    parser.add_argument("--ranks", required=True, type=pathlib.Path)
    parser.add_argument("--floor", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    oracle = load_tiktoken(args.ranks)
    lowest = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts().items():
            ours, theirs = compare(args, oracle, text, folder)
            size = len(text.encode()) / 1e6
            lowest = min(lowest, theirs / ours)
            print(f"{name:14} {size:5.2f} MB  hearth {size / ours:6.1f} MB/s  "
                  f"tiktoken {size / theirs:5.1f} MB/s  ratio {theirs / ours:.2f}")
    sys.exit(0 if lowest >= args.floor else 1)


if __name__ == "__main__":
    main()
