import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import type { CodeDiagnostic, EditorSettings, OpenEditor } from "./code-editor.ts";
import { highlights, look } from "./look.ts";
import { completeFrom } from "./schema-completion.ts";
import { helpFrom } from "./schema-help.ts";

/**
 * An editor in a shadow root. There, the editor's styles are constructable style sheets, which a Content-Security-Policy without inline
 * styles allows. Tab moves the focus on: it never indents.
 */
export function openEditor(
  into: ShadowRoot,
  text: string,
  settings: EditorSettings,
  on: { readonly changed: (text: string) => void; readonly save?: () => void },
): OpenEditor {
  const changeable = new Compartment();
  const save = () => {
    on.save?.();
    return on.save !== undefined;
  };
  const view = new EditorView({
    parent: into,
    root: into,
    state: EditorState.create({
      doc: text,
      extensions: [
        changeable.of(toExtension(settings)),
        lineNumbers(),
        foldGutter(),
        lintGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("  "),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        search({ top: true }),
        syntaxHighlighting(highlights),
        look,
        replaceSelections,
        EditorView.lineWrapping,
        keymap.of([
          { key: "Mod-s", run: save },
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...completionKeymap,
          ...lintKeymap,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) on.changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    show(shown) {
      const change = changeTo(view.state.doc.toString(), shown);
      if (change) view.dispatch({ changes: change });
    },
    configure(changed) {
      view.dispatch({ effects: changeable.reconfigure(toExtension(changed)) });
    },
    diagnose(diagnostics) {
      const { doc } = view.state;
      view.dispatch(
        setDiagnostics(
          view.state,
          diagnostics.map((each) => placed(doc, each)).sort((a, b) => a.from - b.from),
        ),
      );
    },
    goTo(line, column) {
      const anchor = positionOf(view.state.doc, line, column);
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
      view.focus();
    },
    close: () => view.destroy(),
  };
}

/**
 * Text over a selection is inserted here. Chromium would merge the lines with style attributes, which the policy of the page refuses, and
 * reports.
 */
const replaceSelections = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    const text = event.inputType === "insertText" ? event.data : null;
    if (text === null || empty || event.isComposing || view.state.readOnly) return false;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert));
    if (!isHandled) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

function toExtension({ language, label, isReadOnly, schema }: EditorSettings): Extension {
  return [
    language === "json" ? json() : yaml(),
    EditorState.readOnly.of(isReadOnly),
    // Named, so that tools see that the keyboard reaches what scrolls.
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", ...(isReadOnly && { "aria-readonly": "true" }) }),
    schema ? helpFrom(schema) : [],
    autocompletion({ ...(schema && { override: [completeFrom(schema, language)] }), icons: false }),
  ];
}

/** The smallest change from one text to the other, so that the cursor stays where it is. */
function changeTo(before: string, after: string): { from: number; to: number; insert: string } | undefined {
  if (before === after) return undefined;
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before[from] === after[from]) from++;
  let same = 0;
  while (same < shorter - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same++;
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}

/** Faults may come from an older text: their places are moved into this one. */
function placed(doc: Text, { line, column, endLine, endColumn, severity, message }: CodeDiagnostic) {
  const start = positionOf(doc, line, column);
  const { text, from: lineFrom, to: lineTo } = doc.lineAt(start);
  const end = endColumn === undefined ? undefined : positionOf(doc, endLine ?? line, endColumn);
  const word = /^(?:"[^"]*"|[\w.$-]+)/.exec(text.slice(start - lineFrom))?.[0].length;
  const to = Math.max(start, end ?? (word === undefined ? lineTo : start + word));
  // At the end of a line, the character before it is marked, because an empty mark is hard to see.
  return { from: to === start && start > lineFrom ? start - 1 : start, to, severity, message };
}

function positionOf(doc: Text, line: number, column: number): number {
  const { from, length } = doc.line(Math.min(Math.max(line, 1), doc.lines));
  return from + Math.min(Math.max(column - 1, 0), length);
}
