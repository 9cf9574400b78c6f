import { accessErrors, defineContract, pageEnvelope, reply } from "@portico/core/contract";
import * as v from "valibot";

/** Facts about a surface that its contracts do not contain. */
export const describedSurface = {
  /** The surface that is described. */
  surface: v.string(),
  /** Title of the documents; default: the surface's name. */
  title: v.optional(v.string()),
  /** Version of the service; default: `0.0.0`. */
  version: v.optional(v.string(), "0.0.0"),
  /** How clients use realtime channels, as text for readers. It depends on the realtime adapter. */
  transport: v.optional(v.string()),
};

/** The surface that is described, and the facts about it. */
export type DescribedSurface = v.InferInput<v.StrictObjectSchema<typeof describedSurface, undefined>>;

/** `GET /openapi.json` and `GET /asyncapi.json` of a surface. `auth` names the scheme of their guard. */
export function apiDocsContract({ surface, auth }: { readonly surface: string; readonly auth: string }) {
  return defineContract(
    { surface, auth, envelope: pageEnvelope },
    {
      openapi: {
        method: "GET",
        path: "/openapi.json",
        summary: "The calls of this service, as an OpenAPI 3.1 document",
        success: reply.json(v.looseObject({ openapi: v.string() })),
        errors: accessErrors,
      },
      asyncapi: {
        method: "GET",
        path: "/asyncapi.json",
        summary: "The events of this service, as an AsyncAPI 3.0 document",
        success: reply.json(v.looseObject({ asyncapi: v.string() })),
        errors: accessErrors,
      },
    },
  );
}
