import { defineAdapter, ports } from "@portico/core";
import { createLog, type LogBackend } from "./create-log.ts";

/** A log in this process's memory, gone when it closes: for tests and for trying things out. Records are written before the entries. */
export const memoryLog = defineAdapter({
  name: "log/memory",
  port: ports.log,
  needs: { records: ports.records },
  open({ records }, _options, scope) {
    const backend = createMemoryLog(records);
    scope.onClose(backend.close);
    return createLog(backend);
  },
});

const PAGE = 100;

function createMemoryLog(records: ports.Records): LogBackend & { close(): void } {
  const streams = new Map<string, string[]>();
  let closed = false;

  const textsOf = (stream: string): readonly string[] => {
    if (closed) throw new ports.LogUnavailable("The log is closed");
    return streams.get(stream) ?? [];
  };

  return {
    async append(entries, writes) {
      textsOf("");
      if (writes.length > 0) await records.batch(writes);
      return entries.map(({ stream, text }) => {
        const texts = streams.get(stream) ?? [];
        streams.set(stream, texts);
        return texts.push(text);
      });
    },
    page(stream, from, limit, backwards) {
      const texts = textsOf(stream);
      const begin = backwards ? Math.min(from ?? texts.length, texts.length) : (from ?? 1);
      const count = Math.min(limit, PAGE);
      const [low, high] = backwards
        ? [Math.max(1, begin - count + 1), begin]
        : [begin, Math.min(texts.length, begin + count - 1)];
      const page = texts.slice(low - 1, Math.max(low - 1, high)).map((text, at) => ({ sequence: low + at, text }));
      return backwards ? page.reverse() : page;
    },
    count: (stream) => textsOf(stream).length,
    async remove(stream) {
      textsOf(stream);
      return streams.delete(stream);
    },
    async erase(stream, sequences) {
      const texts = textsOf(stream) as string[];
      for (const sequence of sequences) if (sequence <= texts.length) texts[sequence - 1] = "";
    },
    close() {
      closed = true;
      streams.clear();
    },
  };
}
