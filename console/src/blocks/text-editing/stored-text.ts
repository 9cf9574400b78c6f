/** A text that the service has. */
export interface StoredText {
  /** Its lines end with a line feed, as in the editor. */
  readonly text: string;
  /** How the lines of the file end. */
  readonly lineEnd: "\n" | "\r\n";
  /** Names this text in the next save. */
  readonly etag: string;
}

/** A fault in a text, with its place. */
export interface TextProblem {
  /** A text with only warnings can be saved. */
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** JSONPath of the wrong key or value. */
  readonly path: string;
  readonly message: string;
}

/** Thrown by a save if the service has another text than the author has read. Nothing was written. */
export class TextChanged extends Error {
  override readonly name = "TextChanged";
}

/** The text of an answer with an ETag. */
export async function readText(answer: Response): Promise<StoredText> {
  const written = await answer.text();
  return {
    text: written.replaceAll(/\r\n?/g, "\n"),
    lineEnd: written.includes("\r\n") ? "\r\n" : "\n",
    etag: answer.headers.get("etag") ?? "",
  };
}

/** The text as the file has it. */
export function withLineEnds(text: string, { lineEnd = "\n" }: Partial<Pick<StoredText, "lineEnd">> = {}): string {
  return text.replaceAll("\n", lineEnd);
}
