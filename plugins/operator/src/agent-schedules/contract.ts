import {
  defineContract,
  defineErrors,
  ownerErrors,
  pageEnvelope,
  readParameters,
  reply,
  scheduleAnswer,
} from "@portico/core/contract";
import * as v from "valibot";

/** Errors of the calls about schedules. */
export const scheduleErrors = {
  ...ownerErrors("Only the owner may see and change schedules"),
  ...defineErrors({
    unknown_schedule: { status: 404, message: "There is no such schedule" },
    no_owner: { status: 409, message: "The instance has no owner, for whom a schedule could run" },
  }),
};

const text = v.string();
const path = v.strictObject({ agentId: text, name: text });
const { unauthorized, owner_required, unknown_schedule, no_owner } = scheduleErrors;
const ofOne = { unauthorized, owner_required, unknown_schedule };

const schedule = v.object({ agentId: text, name: text, ...scheduleAnswer });

/** Schedules of agents, for the instance's owner: an extension of the specification. */
export const agentSchedulesContract = defineContract(
  { surface: "agent", auth: "owner", envelope: pageEnvelope },
  {
    list: {
      method: "GET",
      path: "/api/schedules",
      summary: "List the schedules of all agents, with their next times and last ends",
      query: readParameters({}),
      success: reply.json(v.object({ schedules: v.array(schedule) })),
      errors: { unauthorized, owner_required },
    },
    trigger: {
      method: "POST",
      path: "/api/schedules/:agentId/:name/trigger",
      summary: "Start a turn as the schedule does, now",
      params: path,
      success: reply.json(v.object({ runId: text }), 202),
      errors: { ...ofOne, no_owner },
    },
    pause: {
      method: "POST",
      path: "/api/schedules/:agentId/:name/pause",
      summary: "Start no more turns at planned times",
      params: path,
      success: reply.json(v.object({ ok: v.literal(true) })),
      errors: ofOne,
    },
    resume: {
      method: "POST",
      path: "/api/schedules/:agentId/:name/resume",
      summary: "Start turns at planned times again",
      params: path,
      success: reply.json(v.object({ ok: v.literal(true) })),
      errors: ofOne,
    },
  },
);
