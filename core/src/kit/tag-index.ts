import type { Records, Write } from "../ports/records.ts";
import type { FindOrder, FindPlace, FindSource } from "./find-page.ts";

/** The tags by which a subject is found. */
export interface Tagged {
  /** ID of the subject: at most 256 characters. */
  readonly id: string;
  /** Its user. */
  readonly owner: string;
  /** The time that orders the results (ISO 8601 in UTC, with milliseconds). Never changes. */
  readonly at: string;
  /** Short texts without spaces: words, or facts such as a status. At most 128 characters each. */
  readonly tags: readonly string[];
}

interface TagRecord {
  readonly tag: string;
  readonly owner: string;
  /** Milliseconds since 1970: shorter than a text, in the record and in both indexes. */
  readonly at: number;
}

/** A list of subjects for each tag, newest first, in one collection of records. */
export interface TagIndex {
  /** The writes that follow a change of a subject. Undefined: it did not exist before, or does not exist any more. */
  changes(before: Tagged | undefined, after: Tagged | undefined): readonly Write[];
  /** The subjects with a tag, of one owner or of all, in either order. */
  list(tag: string, owner?: string): FindSource;
}

/**
 * Open an index of tags in the collection `name`. The caller writes the changes in the commit that changes the subject. A record per tag and
 * subject is all that is stored: every adapter of the port can keep it, and a page of a list reads no more than it shows.
 */
export function createTagIndex(records: Records, name: string): TagIndex {
  const collection = records.collection<TagRecord>({ name, indexes: { byTag: ["tag", "at"], byOwner: ["owner", "tag", "at"] } });
  const recordId = (tag: string, id: string) => `${tag} ${id}`;
  return {
    changes(before, after) {
      const [old, present] = [new Set(before?.tags), new Set(after?.tags)];
      return [
        ...[...old].filter((tag) => !present.has(tag)).map((tag) => collection.write.remove(recordId(tag, before!.id))),
        ...[...present]
          .filter((tag) => !old.has(tag))
          .map((tag) => collection.write.put(recordId(tag, after!.id), { tag, owner: after!.owner, at: Date.parse(after!.at) })),
      ];
    },
    list: (tag, owner) => ({
      async read(after: FindPlace | undefined, limit: number, direction: FindOrder) {
        const { places, isLast } = await collection.places({
          where: owner === undefined ? { tag } : { tag, owner },
          order: { by: "at", direction },
          limit,
          ...(after && { after: { value: Date.parse(after.at), id: recordId(tag, after.id) } }),
        });
        // A tag contains no space.
        return { places: places.map(({ id, value }) => new TagPlace(Number(value), id.slice(tag.length + 1))), isLast };
      },
      async having(ids) {
        const found = await Promise.all(ids.map((id) => collection.get(recordId(tag, id))));
        return new Set(ids.filter((_, at) => found[at] && (owner === undefined || found[at].value.owner === owner)));
      },
    }),
  };
}

/** Most places of a list are only read for their IDs, and writing a time takes longer than reading it. */
class TagPlace implements FindPlace {
  readonly #at: number;
  #text: string | undefined;
  readonly id: string;

  constructor(at: number, id: string) {
    this.#at = at;
    this.id = id;
  }

  get at(): string {
    return (this.#text ??= new Date(this.#at).toISOString());
  }
}
