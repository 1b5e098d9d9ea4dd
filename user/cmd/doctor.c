/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `vmaprof doctor [--json]`: can record work on this machine, and what is lost if not all is
 * there? Exits 0 only if record would work, 1 if not, 2 after a usage error.
 */
#include "cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../kernel/features.h"
#include "../kernel/privileges.h"
#include "../util/json.h"

#define EXIT_OK	    0
#define EXIT_NOT_OK 1
#define EXIT_USAGE  2

struct doctor {
	struct utsname kernel;
	struct vp_features *features;
	struct vp_privileges privileges;
	bool ok; /* would record work? */
};

static const char help[] =
	"Usage: vmaprof doctor [--json]\n"
	"\n"
	"Asks this kernel and this process's privileges what vmaprof can do here, and names what\n"
	"is lost and how to get it. Exits 0 if `vmaprof record` would work, else 1.\n"
	"\n"
	"  --json      one JSON object: kernel, ok, features, privileges\n"
	"  -h, --help  this text\n"
	"\n"
	"Examples:\n"
	"  sudo vmaprof doctor\n"
	"  vmaprof doctor --json | jq -r '.features[] | select(.present | not) | .name'\n";

static int usage_error(const char *what, const char *arg)
{
	fprintf(stderr, "vmaprof: doctor: %s '%s' (see vmaprof doctor --help)\n", what, arg);
	return EXIT_USAGE;
}

/* -1: go on; else the exit code. */
static int parse_args(int argc, char **argv, bool *json)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	const char *arg;
	int c;

	optind = 0; /* main has parsed its own options */
	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			*json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_OK;
		default:
			/* within "-xy" getopt has not gone on to the next argument yet */
			arg = argv[optind - 1];
			return usage_error("unknown option", arg[0] == '-' ? arg : argv[optind]);
		}
	}
	return optind < argc ? usage_error("unexpected argument", argv[optind]) : -1;
}

static int examine(struct doctor *d)
{
	char missing[128];
	int err;

	if (uname(&d->kernel))
		return -errno;
	err = vp_features_probe(&d->features);
	if (err)
		return err;
	vp_privileges_read(&d->privileges);

	d->ok = !vp_privileges_missing(&d->privileges, true, missing, sizeof(missing));
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		const struct vp_feature *f = vp_features_get(d->features, (enum vp_feature_id)i);

		d->ok &= f->present || !f->required;
	}
	return 0;
}

/* ---- JSON ---- */

static void json_key_string(const char *key, const char *value)
{
	printf(",\"%s\":", key);
	vp_json_string(stdout, value);
}

/* What a probe found, or why it found nothing: "" if there is nothing to say. */
static const char *finding(const struct vp_feature *f, char *buf, size_t len)
{
	if (f->needs) {
		snprintf(buf, len, "needs %s", f->needs);
		return buf;
	}
	if (!f->err)
		return f->detail;
	if (f->detail[0])
		snprintf(buf, len, "%s: %s", strerror(-f->err), f->detail);
	else
		snprintf(buf, len, "%s", strerror(-f->err));
	return buf;
}

static void json_feature(const struct vp_feature *f)
{
	char buf[256];

	printf("{\"name\":");
	vp_json_string(stdout, f->name);
	printf(",\"present\":%s,\"required\":%s", f->present ? "true" : "false",
	       f->required ? "true" : "false");
	json_key_string("since", f->since);
	json_key_string("without", f->without);
	json_key_string("hint", f->hint);
	json_key_string("detail", finding(f, buf, sizeof(buf)));
	printf("}");
}

static void json_capabilities(const struct vp_privileges *p, bool held)
{
	const char *separator = "";

	for (const struct vp_capability *c = vp_capabilities; c->name; c++) {
		if (vp_privileges_have(p, c) != held)
			continue;
		printf("%s", separator);
		vp_json_string(stdout, c->name);
		separator = ",";
	}
}

static void print_json(const struct doctor *d)
{
	printf("{\"kernel\":");
	vp_json_string(stdout, d->kernel.release);
	printf(",\"ok\":%s,\"features\":[", d->ok ? "true" : "false");
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		if (i)
			printf(",");
		json_feature(vp_features_get(d->features, (enum vp_feature_id)i));
	}
	printf("],\"privileges\":{\"held\":[");
	json_capabilities(&d->privileges, true);
	printf("],\"missing\":[");
	json_capabilities(&d->privileges, false);
	printf("]}}\n");
}

/* ---- for people ---- */

static bool was_refused(const struct vp_feature *f)
{
	return f->err == -EPERM || f->err == -EACCES;
}

/*
 * "?": without the privileges a trial says nothing about the kernel. With them a refusal is the
 * kernel's, or a policy's, last word.
 */
static const char *state(const struct vp_feature *f, bool privileged)
{
	if (f->present)
		return "yes";
	if (f->needs)
		return "-";
	return was_refused(f) && !privileged ? "?" : "no";
}

/*
 *   iter_task_vma    * yes
 *   hw_cycles          no   cpu-clock instead: code with interrupts off is not seen
 *                           get it: a CPU, or a virtual machine, with a PMU
 */
static void print_feature(const struct vp_feature *f, bool privileged)
{
	char buf[256];
	const char *found = finding(f, buf, sizeof(buf));
	const char *what = state(f, privileged);

	printf("  %-16s %s %-3s", f->name, f->required ? "*" : " ", what);
	if (f->present) {
		printf("%s%s\n", found[0] ? "  " : "", found);
		return;
	}
	if (what[0] == '?') {
		printf("  %s\n", found);
		return;
	}
	if (f->needs) {
		printf("  needs %s\n", f->needs);
		return;
	}
	printf("  %s\n", f->without);
	if (found[0])
		printf("%26sfound:  %s\n", "", found);
	printf("%26sget it: %s\n", "", f->hint);
}

static void print_features(const struct doctor *d, bool privileged)
{
	int unasked = 0;

	printf("Features (* vmaprof record needs it)\n");
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		const struct vp_feature *f = vp_features_get(d->features, (enum vp_feature_id)i);

		print_feature(f, privileged);
		unasked += state(f, privileged)[0] == '?';
	}
	if (unasked)
		printf("  ?: the kernel cannot be asked without the capabilities below\n");
}

static void print_sysctl(const char *name, int value, const char *meaning)
{
	if (value == VP_SYSCTL_UNKNOWN)
		printf("  %-34s not readable\n", name);
	else
		printf("  %-34s %-6d  %s\n", name, value, meaning);
}

static const char *paranoid_meaning(int level)
{
	if (level > 2)
		return "any perf event may need CAP_SYS_ADMIN";
	if (level > 0)
		return "sampling all processes needs CAP_PERFMON";
	return "anyone may sample all processes";
}

static const char *kptr_meaning(int level)
{
	if (level > 1)
		return "kernel addresses are hidden from everyone";
	return level == 1 ? "kernel addresses need CAP_SYSLOG"
			  : "kernel addresses are as perf_event_paranoid says";
}

static void print_privileges(const struct vp_privileges *p)
{
	char hint[900];

	printf("\nPrivileges (* vmaprof record needs it)\n");
	for (const struct vp_capability *c = vp_capabilities; c->name; c++) {
		bool held = vp_privileges_have(p, c);

		printf("  %-22s %s %-3s%s%s\n", c->name, c->required ? "*" : " ",
		       held ? "yes" : "no", held ? "" : "  ", held ? "" : c->without);
	}
	print_sysctl("kernel.unprivileged_bpf_disabled", p->unprivileged_bpf_disabled,
		     p->unprivileged_bpf_disabled ? "BPF needs CAP_BPF"
						  : "does not matter to vmaprof");
	print_sysctl("kernel.perf_event_paranoid", p->perf_event_paranoid,
		     paranoid_meaning(p->perf_event_paranoid));
	print_sysctl("kernel.kptr_restrict", p->kptr_restrict, kptr_meaning(p->kptr_restrict));
	print_sysctl("kernel.perf_event_max_sample_rate", p->perf_event_max_sample_rate,
		     "highest -F");
	if (vp_privileges_missing(p, false, hint, sizeof(hint))) {
		vp_privileges_hint(p, hint, sizeof(hint));
		printf("  How to get them: %s\n", hint);
	}
}

static void print_verdict(const struct doctor *d)
{
	char missing[128];
	int n = vp_privileges_missing(&d->privileges, true, missing, sizeof(missing));

	if (d->ok) {
		printf("\nvmaprof record works here.\n");
		return;
	}
	printf("\nvmaprof record does not work here: missing ");
	if (n)
		printf("%s", missing);
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		const struct vp_feature *f = vp_features_get(d->features, (enum vp_feature_id)i);

		/* What could not be asked is explained by the capabilities, or by what it needs. */
		if (f->present || !f->required || f->needs || (n && was_refused(f)))
			continue;
		printf("%s%s", n++ ? ", " : "", f->name);
	}
	printf(".\n");
}

static void print_text(const struct doctor *d)
{
	char missing[128];
	bool privileged = !vp_privileges_missing(&d->privileges, true, missing, sizeof(missing));

	printf("Linux %s %s\n\n", d->kernel.release, d->kernel.machine);
	print_features(d, privileged);
	print_privileges(&d->privileges);
	print_verdict(d);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor d = {};
	bool json = false;
	int code;
	int err;

	code = parse_args(argc, argv, &json);
	if (code >= 0)
		return code;

	err = examine(&d);
	if (err) {
		fprintf(stderr, "vmaprof: doctor: %s\n", strerror(-err));
		code = EXIT_NOT_OK;
		goto cleanup;
	}
	if (json)
		print_json(&d);
	else
		print_text(&d);
	code = d.ok ? EXIT_OK : EXIT_NOT_OK;
	if (fflush(stdout) == EOF) {
		fprintf(stderr, "vmaprof: doctor: cannot write: %s\n", strerror(errno));
		code = EXIT_NOT_OK;
	}
cleanup:
	vp_features_free(d.features);
	return code;
}
