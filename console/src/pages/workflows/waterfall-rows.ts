import type { Tone } from "../../blocks/StatusBadge.svelte";
import type { WaterfallRow } from "../../blocks/waterfall.ts";
import { describeDuration } from "../../blocks/duration.ts";
import { nodeIcon, nodeKind } from "./node-kinds.ts";
import { isOver, NODE_WORDS } from "./status-words.ts";
import type { Span, TimelineElement, TimelineNode } from "./timeline.ts";
import type { NodeResult } from "./workflow-calls.ts";

interface Shown {
  readonly span: Span;
  /** The run has ended: nodes that have not started will not start. */
  readonly hasEnded: boolean;
  readonly selected: string | undefined;
}

/** The first elements of a `map` or `loop` are listed, and the others in groups of this many. */
const FIRST_ELEMENTS = 12;
const GROUP = 100;
/** Few elements are open at first. */
const FEW = 3;

/** The lines of a run's waterfall. */
export function toRows(nodes: readonly TimelineNode[], shown: Shown): readonly WaterfallRow[] {
  return nodes.map((node) => {
    const { key, id, name, type, result, elements } = node;
    const words = result
      ? NODE_WORDS[result.status]
      : { text: shown.hasEnded ? "Not reached" : "Not begun", tone: "neutral" as const };
    const attempts = (result?.attempts ?? 0) > 1 ? ` · ${result?.attempts} attempts` : "";
    const taken = result?.reused ? " · taken over" : "";
    return {
      key,
      title: name ?? id,
      about: `${nodeKind(type)}${attempts}${taken}`,
      status: words.text,
      tone: words.tone,
      icon: nodeIcon(type),
      ...timeOf(result, shown.span),
      ...((!result || result.status === "skipped") && { isFaint: true }),
      ...(elements.length > 0 && { rows: elementRows(key, elements, shown), isOpen: true }),
    };
  });
}

function elementRows(key: string, elements: readonly TimelineElement[], shown: Shown): readonly WaterfallRow[] {
  const toRow = (element: TimelineElement): WaterfallRow => {
    const isOpen = elements.length <= FEW || (shown.selected?.startsWith(`${element.key}.`) ?? false);
    return { key: element.key, title: element.key, ...stateOf(element), rows: toRows(element.nodes, shown), isOpen };
  };
  const rows = elements.slice(0, FIRST_ELEMENTS).map(toRow);
  for (let from = FIRST_ELEMENTS; from < elements.length; from += GROUP) {
    const group = elements.slice(from, from + GROUP);
    rows.push({
      key: `${key}[${group[0]!.index}…]`,
      title: `${group[0]!.key} to ${group.at(-1)!.key}`,
      tone: "neutral",
      rows: group.map(toRow),
      isOpen: group.some((element) => shown.selected?.startsWith(`${element.key}.`)),
    });
  }
  return rows;
}

/** Of the states of its nodes, the one that matters most. */
const TELLING = ["failed", "waiting", "running", "cancelled"] as const;

function stateOf({ nodes }: TimelineElement): { readonly status: string; readonly tone: Tone } {
  const state = TELLING.find((each) => nodes.some(({ result }) => result?.status === each));
  if (!state) return { status: "", tone: "neutral" };
  return { status: NODE_WORDS[state].text, tone: NODE_WORDS[state].tone };
}

function timeOf(result: NodeResult | undefined, { from, to }: Span): Pick<WaterfallRow, "bar" | "took"> {
  if (result?.startedAt === undefined) return {};
  const startedAt = Date.parse(result.startedAt);
  const milliseconds = result.durationMs ?? (isOver(result.status) ? undefined : to - startedAt);
  if (milliseconds === undefined) return {};
  const share = (part: number) => Math.min(100, Math.max(0, (100 * part) / Math.max(1, to - from)));
  const start = share(startedAt - from);
  return { bar: { from: start, width: Math.min(share(milliseconds), 100 - start) }, took: describeDuration(milliseconds) };
}
