/**
 * The program through which Muster speaks to Ray's job server: Ray's own client, on the head, so that the dashboard need not
 * listen beyond it and a working directory is packaged as Ray does it. It reads one JSON object from its argument, what is on
 * stdin is a tar archive, and it prints one JSON object a line.
 */
import { GUARD } from './inside.ts'
import { OPENER } from './token.ts'

export const JOB_PROGRAM = `import asyncio, json, os, shutil, sys, tempfile, logging
${OPENER}
${GUARD}
logging.disable(logging.WARNING)
order = json.loads(sys.argv[1])
def tell(**what):
    sys.stdout.write(json.dumps(what) + "\\n")
    sys.stdout.flush()
def fail(error):
    tell(type="error", reason=str(error).strip()[-2000:])
    sys.exit(0)
try:
    from ray.job_submission import JobSubmissionClient
    client = JobSubmissionClient("http://" + order["dashboard"])
except Exception as error: fail(error)
def details(job):
    found = {key: getattr(job, key, None) for key in ("submission_id", "job_id", "entrypoint", "message", "start_time", "end_time", "driver_exit_code", "driver_node_id")}
    found["status"] = str(getattr(job.status, "value", job.status))
    return found
async def follow(name):
    async for text in client.tail_job_logs(name): tell(type="log", text=text)
def submit():
    given = {key: value for key, value in order["job"].items() if value is not None}
    environment = {"env_vars": order["env"]} if order["env"] else {}
    directory = tempfile.mkdtemp(prefix="muster-job-") if order["archive"] else None
    try:
        if directory:
            import tarfile
            with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
                if hasattr(tarfile, "data_filter"): archive.extraction_filter = tarfile.tar_filter
                archive.extractall(directory)
            environment["working_dir"] = directory
        return client.submit_job(runtime_env=environment or None, **given)
    finally:
        if directory: shutil.rmtree(directory, ignore_errors=True)
try:
    name = order.get("id")
    if order["do"] == "list":
        for job in client.list_jobs(): tell(type="job", **details(job))
    elif order["do"] == "stop":
        tell(type="stopped", isStopped=bool(client.stop_job(name)))
    else:
        if order["do"] == "submit":
            name = submit()
            tell(type="submitted", id=name)
        guard()
        if order["follow"]: asyncio.run(follow(name))
        elif order["do"] == "logs": tell(type="log", text=client.get_job_logs(name))
        tell(type="job", **details(client.get_job_info(name)))
except SystemExit: raise
except BaseException as error: fail(error)
`
