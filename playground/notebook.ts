// A third-party plugin: contract, errors, configuration, guard, handlers and events.
import { EventEmitter, on } from "node:events";
import { bearerToken, defineContract, defineErrors, definePlugin, fromEnv, ports, reply, secretFromEnv } from "@portico/core";
import * as v from "valibot";

const errors = defineErrors({
  unauthorized: { status: 401, message: "The notebook's token is needed" },
  note_exists: { status: 409, message: "A note of this title is there already" },
  note_unknown: { status: 404, message: "There is no note of this title" },
  cursor_invalid: { status: 400, message: "The cursor does not belong to this list" },
});

const note = v.object({ title: v.string(), text: v.string(), writtenAt: v.string() });
type Note = v.InferOutput<typeof note>;

const title = v.pipe(v.string(), v.nonEmpty(), v.maxLength(100));

/** The routes that callers may use. The contract is only data: clients and documents are derived from it. */
export const notebookContract = defineContract(
  { surface: "notebook", auth: "reader", envelope: (error) => ({ error: error.code, message: error.message }) },
  {
    write: {
      method: "POST",
      path: "/notes",
      summary: "Write a note",
      body: v.strictObject({ title, text: v.string() }),
      success: reply.json(note, 201),
      errors,
    },
    list: {
      method: "GET",
      path: "/notes",
      summary: "List notes by title, page by page",
      query: v.strictObject({ after: v.optional(v.string()) }),
      success: reply.json(v.object({ notes: v.array(note), next: v.optional(v.string()) })),
      errors,
    },
    remove: {
      method: "DELETE",
      path: "/notes/:title",
      summary: "Remove a note",
      params: v.strictObject({ title }),
      success: reply.empty(),
      errors,
    },
    watch: {
      method: "GET",
      path: "/events",
      summary: "Notes as they are written",
      success: reply.events({ written: note }),
      errors,
    },
  },
);

/** The plugin's options, and the environment variables that set them. */
export const notebookConfig = v.strictObject({
  token: secretFromEnv("NOTEBOOK_TOKEN", "Readers and writers send it."),
  pageSize: v.optional(
    fromEnv("NOTEBOOK_PAGE_SIZE", v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)), "Notes of one page."),
    50,
  ),
});

/** A notebook that one token protects. */
export const notebook = definePlugin({
  name: "notebook",
  config: notebookConfig,
  needs: { records: ports.records, secrets: ports.secrets, clock: ports.clock },
  contract: notebookContract,
  guards({ secrets }, { token }) {
    const digest = secrets.digest(token.reveal());
    return {
      reader(head) {
        const presented = bearerToken(head);
        if (presented === undefined || !secrets.matches(presented, digest)) throw errors.unauthorized();
      },
    };
  },
  setup({ records, clock }, { pageSize }) {
    const notes = records.collection<Note>({ name: "notes" });
    const news = new EventEmitter<{ written: [Note] }>().setMaxListeners(0);
    return {
      async write({ body, fail }) {
        const written = { ...body, writtenAt: new Date(clock.now()).toISOString() };
        try {
          await notes.put(body.title, written, "absent");
        } catch (cause) {
          if (cause instanceof ports.RecordConflict) throw fail.note_exists(undefined, {}, cause);
          throw cause;
        }
        news.emit("written", written);
        return written;
      },
      async list({ query, fail }) {
        try {
          const page = await notes.query({ limit: pageSize, ...(query.after !== undefined && { after: query.after }) });
          return { notes: page.items.map((item) => item.value), next: page.next };
        } catch (cause) {
          if (cause instanceof ports.RecordCursorInvalid) throw fail.cursor_invalid(undefined, {}, cause);
          throw cause;
        }
      },
      async remove({ params, fail }) {
        if (!(await notes.remove(params.title))) throw fail.note_unknown();
      },
      watch({ say, signal }) {
        // Listens before the head of the answer is sent, so a caller that has received the head misses no note.
        const written = on(news, "written", { signal });
        return (async function* () {
          for await (const [each] of written as AsyncIterable<[Note]>) yield say.written(each);
        })();
      },
    };
  },
});
