import {
  defineContract,
  defineErrors,
  maxCharacters,
  ownerErrors,
  pageEnvelope,
  readParameters,
  reply,
} from "@portico/core/contract";
import * as v from "valibot";

/** Readers of one process at a time. Each of them parses every line. */
export const MOST_READERS = 8;

/** Earlier lines that a new reader gets, unless it asks for another number. */
const EARLIER_LINES = 200;
const MOST_EARLIER_LINES = 2_000;

/** Errors of reading the log. */
export const logErrors = {
  ...ownerErrors("Only the instance's owner may read the log"),
  ...defineErrors({
    too_many_readers: { status: 429, message: `The log of this process has ${MOST_READERS} readers already` },
  }),
};

/** Levels of lines, the least urgent first. */
export const LEVELS = ["debug", "info", "warn", "error"] as const;
/** What a line is about: the end of a request, or anything else. `work`: of anything else, a turn or a workflow run. */
export const KINDS = ["request", "message", "work"] as const;
/** Whose lines are sent: those of the answering process, or of all processes of the instance. */
export const PROCESSES = ["own", "all"] as const;

const count = v.number();
const word = v.pipe(v.string(), v.minLength(1), maxCharacters(200));

/** With `processes=all`, a line names its process: `HOST/PID`. */
const line = v.looseObject({ level: v.picklist(LEVELS), time: v.string(), msg: v.string(), process: v.optional(v.string()) });

/** The log of the answering process, or of all processes, on the agent service: an extension of the specification. */
export const logContract = defineContract(
  { surface: "agent", auth: "owner", envelope: pageEnvelope },
  {
    follow: {
      method: "GET",
      path: "/api/log",
      summary: "Follow the log lines of this process or of all processes, from its newest lines or after the `Last-Event-ID`",
      query: readParameters({
        /** The lowest level. */
        level: v.optional(v.picklist(LEVELS)),
        kind: v.optional(v.picklist(KINDS)),
        /** Of other processes, only new lines are sent. */
        processes: v.optional(v.picklist(PROCESSES), "own"),
        /** The whole `area` of a line. */
        area: v.optional(word),
        /** A part of the message or of the value of a field, in letters of any case. */
        text: v.optional(word),
        /** The whole id of a request, run, turn or trace. */
        id: v.optional(word),
        /** How many earlier lines come first. */
        last: v.optional(
          v.pipe(v.string(), v.regex(/^(?:0|[1-9]\d{0,3})$/), v.transform(Number), v.maxValue(MOST_EARLIER_LINES)),
          String(EARLIER_LINES),
        ),
      }),
      success: reply.events({
        "log:opened": v.object({
          process: v.object({ id: v.string(), host: v.string(), pid: count }),
          /** Whether the lines continue after the `Last-Event-ID`. False if another process sent that id. */
          isResumed: v.boolean(),
          /** The areas of the service, and those of the kept lines of this process, for filters. */
          areas: v.array(v.string()),
        }),
        "log:line": line,
        /** The number of lines that were dropped before they could be sent, whatever the filters are. */
        "log:missed": v.object({ lines: count, process: v.optional(v.string()) }),
      }),
      errors: logErrors,
    },
  },
);
