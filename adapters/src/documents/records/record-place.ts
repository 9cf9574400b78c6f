import { createHash } from "node:crypto";
import { ports, readPages } from "@portico/core";
import type { CheckCurrent, DocumentPlace } from "../document-place.ts";
import { followBus } from "../follow-bus.ts";

/** The facts about a document without its text. Lists read only these records. */
interface Head {
  readonly source: string;
  readonly name: string;
  /** SHA-256 of the text. */
  readonly digest: string;
}

interface Text {
  readonly text: string;
}

const PAGE = 1000;

/**
 * Documents of one source as records: two for each document, written in one commit. Other processes are told by the bus. Records
 * of all sources are in the same two collections.
 */
export function recordPlace(source: string, records: ports.Records, bus: ports.Bus | undefined): DocumentPlace {
  const heads = records.collection<Head>({ name: "instance-documents", indexes: { bySource: ["source", "name"] } });
  const texts = records.collection<Text>({ name: "instance-document-texts" });
  const topic = `documents/${source}`;
  const idOf = (name: string): string => `${source}/${name}`;

  const find = async (name: string): Promise<ports.Stored<Text> | undefined> => {
    const found = await texts.get(idOf(name));
    if (found && typeof found.value.text !== "string")
      throw new ports.DocumentsUnavailable(`The stored document ${name} is damaged`);
    return found;
  };
  /** Repeats `change` until no other process writes between its check and its commit, or until its check refuses. */
  const changeChecked = async (
    name: string,
    check: CheckCurrent,
    change: (version: number | undefined) => readonly ports.Write[],
  ): Promise<void> => {
    for (;;) {
      const current = await find(name);
      check(current?.value.text);
      try {
        await records.batch(change(current?.version));
        return bus?.publish(topic, { name });
      } catch (error) {
        if (!(error instanceof ports.RecordConflict)) throw error;
      }
    }
  };

  return {
    read: async (name) => (await find(name))?.value.text,
    replace: (name, text, check) =>
      changeChecked(name, check, (version) => [
        texts.write.put(idOf(name), { text }, version ?? "absent"),
        heads.write.put(idOf(name), { source, name, digest: digestOf(text) }),
      ]),
    remove: (name, check) =>
      changeChecked(name, check, (version) =>
        version === undefined ? [] : [texts.write.remove(idOf(name), version), heads.write.remove(idOf(name))],
      ),
    list: async () => [...(await fingerprints()).keys()],
    fingerprint: async (name) => (await heads.get(idOf(name)))?.value.digest,
    fingerprints,
    ...(bus && { watch: async (hint) => followBus(bus, topic, hint) }),
  };

  async function fingerprints(): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    const order = { by: "name", direction: "ascending" } as const;
    for await (const items of readPages(heads, { where: { source }, order, limit: PAGE })) {
      for (const { value } of items) found.set(value.name, value.digest);
    }
    return found;
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
