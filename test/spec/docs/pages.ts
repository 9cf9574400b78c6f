import { readText, repositoryFiles } from "../../rooms/repository.ts";

/** A page for readers: README, CONTRIBUTING, the areas' own and everything in docs. */
export interface Page {
  readonly file: string;
  readonly text: string;
}

/** A fenced block of code. */
export interface Block {
  readonly file: string;
  readonly language: string;
  readonly text: string;
  /** What the comment on the line before says of it: the whole of a file, or a piece. */
  readonly quotes: { readonly file: string; readonly isWhole: boolean } | undefined;
}

export async function readPages(): Promise<Page[]> {
  const files = (await repositoryFiles()).filter((file) =>
    /^(?:README\.md|CONTRIBUTING\.md|docs\/.*\.md|(?:plugins|playground)\/.*README\.md)$/.test(file),
  );
  return Promise.all(files.map(async (file) => ({ file, text: await readText(file) })));
}

export function blocksOf({ file, text }: Page): Block[] {
  const fences = text.matchAll(/(?:^<!-- (from )?(\S+\.(?:ts|yaml)) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm);
  return [...fences].map(([, piece, quoted, language = "", code = ""]) => ({
    file,
    language,
    text: code,
    quotes: quoted === undefined ? undefined : { file: quoted, isWhole: piece === undefined },
  }));
}

/** The page without its fenced blocks. */
export function proseOf({ text }: Page): string {
  return text.replaceAll(/^```\w*\n[\s\S]*?^```$/gm, "");
}
