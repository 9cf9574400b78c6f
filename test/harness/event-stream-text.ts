/** The text of one server-sent event in a stream. */
export interface WireEvent {
  readonly name: string | undefined;
  readonly data: string;
}

/**
 * Splits the text of a whole event stream into its events, by the rules of the HTML standard, and throws where a well-behaved
 * server would not have written it so: an unknown field, a comment inside an event, an event without its closing blank
 * line.
 */
export function splitEventStream(stream: string | Uint8Array): readonly WireEvent[] {
  const text = typeof stream === "string" ? stream : new TextDecoder("utf-8", { fatal: true }).decode(stream);
  const events: WireEvent[] = [];
  let name: string | undefined;
  let data: string[] = [];
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/);
  if (lines.pop() !== "") throw new Error("the stream ends in the middle of a line");
  for (const line of lines) {
    if (line === "") {
      if (name !== undefined && data.length === 0) throw new Error(`event "${name}" has no data`);
      if (data.length > 0) events.push({ name, data: data.join("\n") });
      name = undefined;
      data = [];
    } else if (line.startsWith(":")) {
      if (name !== undefined || data.length > 0) throw new Error("a comment stands inside an event");
    } else {
      const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) as unknown as [string, string, string | undefined];
      if (field === "data") data.push(value ?? "");
      else if (field === "event") name = value ?? "";
      else if (field !== "id" && field !== "retry")
        throw new Error("the stream has a line that is no field of server-sent events");
    }
  }
  if (name !== undefined || data.length > 0) throw new Error("the last event is not closed by a blank line");
  return events;
}
