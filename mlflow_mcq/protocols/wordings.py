"""Our own words in twelve languages: data, one block a language.

``{labels}`` and ``{kind}`` are the only fields. Outside English an instruction speaks of
marks and never of letters or numbers, so that it holds for every label style without a
grammar of its own. The answer cues are ones that the strict rule knows, whatever the
language; the tests hold both together.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WORDINGS", "Wording"]


@dataclass(frozen=True, slots=True)
class Wording:
    """What a language says.

    Attributes:
        letters: Asks for a label and nothing else.
        reasoned: Asks for reasoning, then a label after the cue.
        dashes: Asks to end with the phrase and an option's full text.
        text: Asks for an option's full text and nothing else.
        short: Asks for a free answer in few words.
        first: Asks to reason before the options are seen.
        second: Stands above the options that come afterwards.
        guess: Says that the question is not shown.
        nota: The option that says that all others are wrong. It speaks of the *others* and
            not of those *above*, so that it may stand in any slot.
        cue: Stands before an answer.
        reasoning: Stands before reasoning, in plain text.
        phrase: Stands before an option's text in ``dashes``.
        comma: Between names in a list.
        last: Before the last name in a list.
        gap: Between a cue and what follows it.
    """

    letters: str
    reasoned: str
    dashes: str
    text: str
    short: str
    first: str
    second: str
    guess: str
    nota: str
    cue: str
    reasoning: str
    phrase: str
    comma: str = ", "
    last: str = ", "
    gap: str = " "


WORDINGS: dict[str, Wording] = {
    "en": Wording(
        letters="Answer with the {kind} of one option only: {labels}.",
        reasoned='Think step by step, then end with a line that says "Answer: " and the {kind} '
        "of one option: {labels}.",
        dashes='Choose one of the options above. End with the words "the answer is" followed by '
        "the full text of that option.",
        text="Choose one of the options above. Answer with the full text of that option only.",
        short="Answer in a few words.",
        first="Think step by step about this question. The options will be shown afterwards.",
        second="These are the options:",
        guess="The question is not shown. Which of these options is most likely the right answer?",
        nota="None of the other options",
        cue="Answer:",
        reasoning="Reasoning:",
        phrase="the answer is",
        last=" or ",
    ),
    "zh": Wording(
        letters="请只回答以下标号之一：{labels}。",
        reasoned="请逐步思考，最后单独用一行写出“答案：”和以下标号之一：{labels}。",
        dashes="请从以上选项中选择一个。最后写出“答案是”，并在其后写出该选项的完整内容。",
        text="请从以上选项中选择一个。只回答该选项的完整内容。",
        short="请用简短的词语回答。",
        first="请逐步思考这个问题。选项将在之后给出。",
        second="选项如下：",
        guess="题目没有给出。以下哪一个选项最可能是正确答案？",
        nota="其他选项都不正确",
        cue="答案：",
        reasoning="推理：",
        phrase="答案是",
        comma="、",
        last="、",
        gap="",
    ),
    "es": Wording(
        letters="Responde solo con una de estas etiquetas: {labels}.",
        reasoned='Razona paso a paso y termina con una línea que diga "Respuesta: " y una de '
        "estas etiquetas: {labels}.",
        dashes='Elige una de las opciones anteriores. Termina con las palabras "la respuesta es" '
        "seguidas del texto completo de esa opción.",
        text="Elige una de las opciones anteriores. Responde solo con el texto completo de esa "
        "opción.",
        short="Responde en pocas palabras.",
        first="Razona paso a paso sobre esta pregunta. Las opciones se mostrarán después.",
        second="Estas son las opciones:",
        guess="La pregunta no se muestra. ¿Cuál de estas opciones es, con más probabilidad, la "
        "respuesta correcta?",
        nota="Ninguna de las otras opciones",
        cue="Respuesta:",
        reasoning="Razonamiento:",
        phrase="la respuesta es",
        last=" o ",
    ),
    "de": Wording(
        letters="Antworte nur mit der Kennung einer Option: {labels}.",
        reasoned='Denke Schritt für Schritt nach und schließe mit einer Zeile, in der "Antwort: " '
        "und die Kennung einer Option steht: {labels}.",
        dashes='Wähle eine der obigen Optionen. Schließe mit den Worten "die Antwort ist", gefolgt '
        "vom vollständigen Text dieser Option.",
        text="Wähle eine der obigen Optionen. Antworte nur mit dem vollständigen Text dieser "
        "Option.",
        short="Antworte mit wenigen Worten.",
        first="Denke Schritt für Schritt über diese Frage nach. Die Optionen werden danach "
        "gezeigt.",
        second="Das sind die Optionen:",
        guess="Die Frage wird nicht gezeigt. Welche dieser Optionen ist am wahrscheinlichsten die "
        "richtige Antwort?",
        nota="Keine der anderen Optionen",
        cue="Antwort:",
        reasoning="Überlegung:",
        phrase="die Antwort ist",
        last=" oder ",
    ),
    "fr": Wording(
        letters="Réponds uniquement par l'un de ces repères : {labels}.",
        reasoned='Raisonne étape par étape, puis termine par une ligne qui contient "Réponse : " '
        "et l'un de ces repères : {labels}.",
        dashes='Choisis une des options ci-dessus. Termine par les mots "la réponse est" suivis du '
        "texte complet de cette option.",
        text="Choisis une des options ci-dessus. Réponds uniquement par le texte complet de cette "
        "option.",
        short="Réponds en quelques mots.",
        first="Réfléchis étape par étape à cette question. Les options seront montrées ensuite.",
        second="Voici les options :",
        guess="La question n'est pas montrée. Laquelle de ces options est le plus probablement la "
        "bonne réponse ?",
        nota="Aucune des autres options",
        cue="Réponse :",
        reasoning="Raisonnement :",
        phrase="la réponse est",
        last=" ou ",
    ),
    "ja": Wording(
        letters="次の記号のうち一つだけで答えてください：{labels}。",
        reasoned="順を追って考え、最後の行に「答え：」と次の記号のうち一つを書いてください："
        "{labels}。",
        dashes="上の選択肢から一つ選んでください。最後に「答えは」と書き、続けてその選択肢の全文を"
        "書いてください。",
        text="上の選択肢から一つ選び、その選択肢の全文だけを答えてください。",
        short="短い言葉で答えてください。",
        first="この問題について順を追って考えてください。選択肢は後で示します。",
        second="選択肢は次のとおりです：",
        guess="問題文は示されません。次の選択肢のうち、正解である可能性が最も高いものはどれですか。",
        nota="他の選択肢はどれも正しくない",
        cue="答え：",
        reasoning="考え：",
        phrase="答えは",
        comma="、",
        last="、",
        gap="",
    ),
    "ko": Wording(
        letters="다음 기호 중 하나로만 답하세요: {labels}.",
        reasoned='단계별로 생각한 다음, 마지막 줄에 "정답: "과 다음 기호 중 하나를 쓰세요: '
        "{labels}.",
        dashes='위의 선택지 중 하나를 고르세요. 마지막에 "정답은"이라고 쓰고, 이어서 그 선택지의 '
        "전체 내용을 쓰세요.",
        text="위의 선택지 중 하나를 고르고, 그 선택지의 전체 내용만 답하세요.",
        short="몇 단어로만 답하세요.",
        first="이 문제를 단계별로 생각해 보세요. 선택지는 나중에 제시됩니다.",
        second="선택지는 다음과 같습니다:",
        guess="문제는 제시되지 않습니다. 다음 선택지 중 정답일 가능성이 가장 높은 것은 무엇입니까?",
        nota="다른 선택지는 모두 정답이 아님",
        cue="정답:",
        reasoning="풀이:",
        phrase="정답은",
    ),
    "ar": Wording(
        letters="أجب برمز واحد فقط من الرموز التالية: {labels}.",
        reasoned='فكّر خطوة بخطوة، ثم اختم بسطر يحتوي على "الإجابة: " ورمز واحد من الرموز '
        "التالية: {labels}.",
        dashes='اختر واحدًا من الخيارات أعلاه. اختم بعبارة "الإجابة هي" متبوعة بالنص الكامل لذلك '
        "الخيار.",
        text="اختر واحدًا من الخيارات أعلاه. أجب بالنص الكامل لذلك الخيار فقط.",
        short="أجب بكلمات قليلة.",
        first="فكّر في هذا السؤال خطوة بخطوة. ستُعرض الخيارات بعد ذلك.",
        second="هذه هي الخيارات:",
        guess="السؤال غير معروض. أي هذه الخيارات هو الإجابة الصحيحة على الأرجح؟",
        nota="لا شيء من الخيارات الأخرى",
        cue="الإجابة:",
        reasoning="التفكير:",
        phrase="الإجابة هي",
        comma="، ",
        last=" أو ",
    ),
    "hi": Wording(
        letters="केवल इन चिह्नों में से एक से उत्तर दें: {labels}।",
        reasoned='चरण दर चरण सोचें, फिर अंतिम पंक्ति में "उत्तर: " और इन चिह्नों में से एक लिखें: {labels}।',
        dashes='ऊपर दिए गए विकल्पों में से एक चुनें। अंत में "सही उत्तर:" लिखें और उसके बाद उस '
        "विकल्प का पूरा पाठ लिखें।",
        text="ऊपर दिए गए विकल्पों में से एक चुनें। केवल उस विकल्प का पूरा पाठ लिखें।",
        short="कुछ ही शब्दों में उत्तर दें।",
        first="इस प्रश्न पर चरण दर चरण सोचें। विकल्प बाद में दिखाए जाएँगे।",
        second="विकल्प ये हैं:",
        guess="प्रश्न नहीं दिखाया गया है। इनमें से किस विकल्प के सही उत्तर होने की संभावना सबसे अधिक है?",
        nota="अन्य विकल्पों में से कोई नहीं",
        cue="उत्तर:",
        reasoning="तर्क:",
        phrase="सही उत्तर:",
        last=" या ",
    ),
    "pt": Wording(
        letters="Responda apenas com um destes rótulos: {labels}.",
        reasoned='Pense passo a passo e termine com uma linha que diga "Resposta: " e um destes '
        "rótulos: {labels}.",
        dashes='Escolha uma das opções acima. Termine com as palavras "a resposta é" seguidas do '
        "texto completo dessa opção.",
        text="Escolha uma das opções acima. Responda apenas com o texto completo dessa opção.",
        short="Responda em poucas palavras.",
        first="Pense passo a passo sobre esta pergunta. As opções serão mostradas depois.",
        second="Estas são as opções:",
        guess="A pergunta não é mostrada. Qual destas opções é mais provavelmente a resposta "
        "correta?",
        nota="Nenhuma das outras opções",
        cue="Resposta:",
        reasoning="Raciocínio:",
        phrase="a resposta é",
        last=" ou ",
    ),
    "ru": Wording(
        letters="Ответьте только одним из этих обозначений: {labels}.",
        reasoned='Рассуждайте шаг за шагом, а в конце напишите строку со словом "Ответ: " и одним '
        "из этих обозначений: {labels}.",
        dashes='Выберите один из вариантов выше. Закончите словами "правильный ответ:" и полным '
        "текстом этого варианта.",
        text="Выберите один из вариантов выше. Ответьте только полным текстом этого варианта.",
        short="Ответьте несколькими словами.",
        first="Обдумайте этот вопрос шаг за шагом. Варианты ответа будут показаны потом.",
        second="Варианты ответа:",
        guess="Вопрос не показан. Какой из этих вариантов вероятнее всего является правильным "
        "ответом?",
        nota="Ни один из других вариантов",
        cue="Ответ:",
        reasoning="Рассуждение:",
        phrase="правильный ответ:",
        last=" или ",
    ),
    "vi": Wording(
        letters="Chỉ trả lời bằng một trong các ký hiệu sau: {labels}.",
        reasoned='Hãy suy nghĩ từng bước, rồi kết thúc bằng một dòng ghi "Đáp án: " và một trong '
        "các ký hiệu sau: {labels}.",
        dashes='Hãy chọn một trong các lựa chọn ở trên. Kết thúc bằng cụm từ "đáp án là", theo sau '
        "là toàn bộ nội dung của lựa chọn đó.",
        text="Hãy chọn một trong các lựa chọn ở trên. Chỉ trả lời bằng toàn bộ nội dung của lựa "
        "chọn đó.",
        short="Hãy trả lời bằng vài từ.",
        first="Hãy suy nghĩ từng bước về câu hỏi này. Các lựa chọn sẽ được đưa ra sau.",
        second="Các lựa chọn như sau:",
        guess="Câu hỏi không được hiển thị. Lựa chọn nào sau đây có khả năng là đáp án đúng nhất?",
        nota="Không lựa chọn nào khác là đúng",
        cue="Đáp án:",
        reasoning="Lập luận:",
        phrase="đáp án là",
        last=" hoặc ",
    ),
}
"""By ISO 639-1 code."""
