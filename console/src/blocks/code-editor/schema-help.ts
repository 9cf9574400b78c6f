import { type EditorState, type Extension, Prec, StateEffect, StateField } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, showTooltip, type Tooltip } from "@codemirror/view";
import { isMap, isScalar, isSeq, type Node, type Pair, parseDocument } from "yaml";
import type { CompletionSchema } from "./code-editor.ts";
import { schemasAt, type Step } from "./schemas-at.ts";

/** What a schema says about a name in the text. */
interface Help {
  /** The place of the name. */
  readonly from: number;
  readonly to: number;
  readonly name: string;
  readonly lines: readonly string[];
}

/** Longer texts are not read while the pointer moves. */
const TEXT_LENGTH = 200_000;
const VALUES_SHOWN = 20;

/** Shows what a JSON Schema says about the name under the pointer, and about the name at the cursor after Ctrl+I or Cmd+I. */
export function helpFrom(schema: CompletionSchema): Extension {
  const toggle = (view: EditorView) => {
    const { state } = view;
    const help = state.field(shown) === null ? helpAt(schema, state, state.selection.main.head) : undefined;
    const announced = help ? [EditorView.announce.of([`${help.name}:`, ...help.lines].join(" "))] : [];
    view.dispatch({ effects: [show.of(help ? toTooltip(help) : null), ...announced] });
    return true;
  };
  const close = (view: EditorView) => {
    if (view.state.field(shown) === null) return false;
    view.dispatch({ effects: show.of(null) });
    return true;
  };
  return [
    hoverTooltip((view, position) => {
      const help = helpAt(schema, view.state, position);
      return help ? toTooltip(help) : null;
    }),
    shown,
    Prec.high(
      keymap.of([
        { key: "Mod-i", run: toggle },
        { key: "Escape", run: close },
      ]),
    ),
  ];
}

const show = StateEffect.define<Tooltip | null>();
const shown = StateField.define<Tooltip | null>({
  create: () => null,
  update(tooltip, { effects, docChanged, selection }) {
    const effect = effects.find((each) => each.is(show));
    if (effect) return effect.value as Tooltip | null;
    return docChanged || selection ? null : tooltip;
  },
  provide: (field) => showTooltip.from(field),
});

function toTooltip({ from, to, name, lines }: Help): Tooltip {
  return {
    pos: from,
    end: to,
    above: true,
    create() {
      const dom = document.createElement("div");
      dom.className = "cm-help";
      const title = document.createElement("strong");
      title.textContent = name;
      const paragraphs = lines.map((line) => {
        const paragraph = document.createElement("p");
        paragraph.textContent = line;
        return paragraph;
      });
      dom.append(title, ...paragraphs);
      return { dom };
    },
  };
}

function helpAt(root: CompletionSchema, state: EditorState, position: number): Help | undefined {
  if (state.doc.length > TEXT_LENGTH) return undefined;
  const document = parseDocument(state.doc.toString(), { strict: false, uniqueKeys: false, logLevel: "silent" });
  const found = nameAt(document.contents, position);
  if (!found) return undefined;
  const { schemas } = schemasAt(root, found.path, valueOf(document));
  const descriptions = schemas.flatMap(({ description }) => description ?? []);
  const values = schemas.flatMap((schema) => schema.enum ?? []).filter((value) => typeof value !== "object");
  const more = values.length > VALUES_SHOWN ? ", …" : "";
  const lines = [
    ...descriptions.slice(0, 1),
    ...(values.length > 0 ? [`Values: ${values.slice(0, VALUES_SHOWN).join(", ")}${more}`] : []),
  ];
  return lines.length === 0 ? undefined : { ...found, name: String(found.path.at(-1)), lines };
}

interface FoundName {
  readonly path: readonly Step[];
  readonly from: number;
  readonly to: number;
}

/** The name at a position, and its path. */
function nameAt(node: unknown, position: number, path: readonly Step[] = []): FoundName | undefined {
  if (isSeq(node)) {
    const at = node.items.findIndex((item) => holds(item as Node, position));
    return at < 0 ? undefined : nameAt(node.items[at], position, [...path, at]);
  }
  if (!isMap(node)) return undefined;
  for (const { key, value } of node.items as Pair[]) {
    if (!isScalar(key)) continue;
    const [from, to] = key.range ?? [0, -1];
    const own = [...path, String(key.value)];
    if (position >= from && position <= to) return { path: own, from, to };
    if (holds(value, position)) return nameAt(value, position, own);
  }
  return undefined;
}

function holds(node: unknown, position: number): boolean {
  const range = (node as Node | null | undefined)?.range;
  return range !== null && range !== undefined && position >= range[0] && position <= range[1];
}

function valueOf(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    return undefined;
  }
}
