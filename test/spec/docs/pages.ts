import MarkdownIt from "markdown-it";
import { readText, repositoryFiles } from "../../rooms/repository.ts";

/** A page for readers: the README of everything that has one, CONTRIBUTING, SECURITY, and everything in docs. */
export interface Page {
  readonly file: string;
  readonly text: string;
  /** The page without its blocks of code. */
  readonly prose: string;
  readonly blocks: readonly Block[];
}

/** A block of code. */
export interface Block {
  readonly file: string;
  /** Where its first line of code stands, counted from 1. */
  readonly line: number;
  /** The word after the fence; empty without one. */
  readonly language: string;
  readonly text: string;
  readonly mark: Mark | undefined;
}

/** What the comment on the line before a block says of it: `<!-- FILE -->`, `<!-- from FILE -->`, `<!-- into FILE -->` and so on. */
export interface Mark {
  readonly kind: "whole" | "from" | "into" | "printed by" | "answer of" | "run by";
  /** A file of this repository; for `into` one of the reader's folder; for `printed by` a command, for `answer of` a route. */
  readonly of: string;
}

export async function readPages(): Promise<Page[]> {
  const files = (await repositoryFiles()).filter((file) =>
    /^(?:CONTRIBUTING\.md|SECURITY\.md|docs\/.*\.md|(?:\w+\/)?README\.md|(?:adapters|plugins|playground)\/.*README\.md)$/.test(
      file,
    ),
  );
  return Promise.all(files.map(readPage));
}

export async function readPage(file: string): Promise<Page> {
  return toPage(file, await readText(file));
}

const markdown = new MarkdownIt({ html: true });

export function toPage(file: string, text: string): Page {
  const lines = text.split("\n");
  const inBlocks = new Set<number>();
  const blocks: Block[] = [];
  for (const { type, map, info, content } of markdown.parse(text, {})) {
    if (!map || (type !== "fence" && type !== "code_block")) continue;
    const [start, end] = map;
    for (let line = start; line < end; line++) inBlocks.add(line);
    const mark = markOf(lines[start - 1]);
    blocks.push({ file, line: start + (type === "fence" ? 2 : 1), language: info.trim(), text: content, mark });
  }
  return { file, text, blocks, prose: lines.filter((_, line) => !inBlocks.has(line)).join("\n") };
}

function markOf(line: string | undefined): Mark | undefined {
  const [, kind = "whole", of] = /^\s*<!-- (?:(from|into|printed by|answer of|run by) )?(\S.*?) -->$/.exec(line ?? "") ?? [];
  if (of === undefined || (kind === "whole" && !/^\S+\.\w+$/.test(of))) return undefined;
  return { kind: kind as Mark["kind"], of };
}
