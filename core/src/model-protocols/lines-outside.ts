const ERROR_FIELD = "error:";

/**
 * Makes events of lines that are not fields of server-sent events. Servers of llama.cpp write an error into a field of its own (ggml-org/llama.cpp#16104), and others as a
 * line of JSON without a field (pepperoni21/ollama-rs#357). Takes the text of a stream in pieces, which may be cut anywhere.
 */
export class LinesOutside {
  /** The beginning of a line that may become such a field. */
  #held = "";
  #isLineStart = true;

  push(piece: string): string {
    const text = this.#held + piece;
    const lastLine = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1;
    const isOpen = (lastLine > 0 || this.#isLineStart) && lastLine < text.length && ERROR_FIELD.startsWith(text.slice(lastLine));
    this.#held = isOpen ? text.slice(lastLine) : "";
    const complete = isOpen ? text.slice(0, lastLine) : text;
    if (complete === "") return "";
    const read = this.#isLineStart ? asEvent(complete) : complete;
    this.#isLineStart = /[\r\n]$/.test(complete);
    return read.replaceAll(/([\r\n])\{/g, "$1\ndata: {").replaceAll(/([\r\n])error:/g, "$1\nevent: error\ndata:");
  }

  /** What is held back, at the end of the stream. */
  end(): string {
    return this.#held;
  }
}

function asEvent(line: string): string {
  if (line.startsWith("{")) return `\ndata: ${line}`;
  return line.startsWith(ERROR_FIELD) ? `\nevent: error\ndata:${line.slice(ERROR_FIELD.length)}` : line;
}
