BEGIN TRANSACTION;
CREATE TABLE attempts (
	job BIGINT NOT NULL, 
	number INTEGER NOT NULL, 
	launch TEXT NOT NULL, 
	confirmed INTEGER DEFAULT '0' NOT NULL, 
	stopping INTEGER DEFAULT '0' NOT NULL, 
	started FLOAT NOT NULL, 
	ended FLOAT, 
	outcome TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (job, number)
);
INSERT INTO "attempts" VALUES(1,1,'{"allocation":{"parts":[{"node":0,"devices":3,"cpu":0,"memory":0,"share":1000,"gpu_memory":0}],"gpus":2,"mode":0,"milli_gpus":2000}}',1,0,1700000000.0,1700000006.0,'exit code 0');
INSERT INTO "attempts" VALUES(2,1,'{"allocation":{"parts":[{"node":0,"devices":15,"cpu":0,"memory":0,"share":1000,"gpu_memory":0}],"gpus":4,"mode":0,"milli_gpus":4000}}',1,0,1700000008.0,NULL,'');
CREATE TABLE batches (
	sequence BIGINT NOT NULL, 
	now FLOAT NOT NULL, 
	wall FLOAT NOT NULL, 
	events TEXT NOT NULL, 
	PRIMARY KEY (sequence)
);
INSERT INTO "batches" VALUES(1,0.0,1700000000.0,'[["Submitted",{"spec":{"id":1,"name":"j1","submit":0.0,"request":{"alternatives":[{"groups":[{"most":2,"each":{"gpus":1,"share":1000,"gpu_memory":0,"cpu":null,"memory":null},"least":2}],"types":[]}],"modes":[{"name":"plain","memory_factor":1.0,"time_factor":1.0}],"labels":[],"datasets":[]},"tenant":"","user":"ann","model":"","priority":0.0,"deadline":null,"estimate":5.0,"group":"","resumable":false,"retries":0,"kind":"batch","latency_target":null}}]]');
INSERT INTO "batches" VALUES(2,1.0,1700000001.0,'[["Started",{"job":1,"allocation":{"parts":[{"node":0,"devices":3,"cpu":0,"memory":0,"share":1000,"gpu_memory":0}],"gpus":2,"mode":0,"milli_gpus":2000}}]]');
INSERT INTO "batches" VALUES(3,6.0,1700000006.0,'[["Finished",{"job":1}]]');
INSERT INTO "batches" VALUES(4,8.0,1700000008.0,'[["Submitted",{"spec":{"id":2,"name":"j2","submit":8.0,"request":{"alternatives":[{"groups":[{"most":4,"each":{"gpus":1,"share":1000,"gpu_memory":0,"cpu":null,"memory":null},"least":4}],"types":[]}],"modes":[{"name":"plain","memory_factor":1.0,"time_factor":1.0}],"labels":[],"datasets":[]},"tenant":"","user":"ann","model":"","priority":0.0,"deadline":null,"estimate":100.0,"group":"","resumable":false,"retries":0,"kind":"batch","latency_target":null}}]]');
INSERT INTO "batches" VALUES(5,9.0,1700000009.0,'[["Started",{"job":2,"allocation":{"parts":[{"node":0,"devices":15,"cpu":0,"memory":0,"share":1000,"gpu_memory":0}],"gpus":4,"mode":0,"milli_gpus":4000}}]]');
CREATE TABLE jobs (
	id BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	submission TEXT NOT NULL, 
	secrets TEXT NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	pause FLOAT, 
	failures INTEGER DEFAULT '0' NOT NULL, 
	code INTEGER, 
	signal INTEGER, 
	submitted FLOAT NOT NULL, 
	started FLOAT, 
	ended FLOAT, 
	PRIMARY KEY (id)
);
INSERT INTO "jobs" VALUES(1,'j1','ann','{"command":["train"],"request":{"alternatives":[{"groups":[{"most":2,"each":{"gpus":1,"share":1000,"gpu_memory":0,"cpu":null,"memory":null},"least":2}],"types":[]}],"modes":[{"name":"plain","memory_factor":1.0,"time_factor":1.0}],"labels":[],"datasets":[]},"name":"j1","owner":"ann","directory":"/","environment":{},"tenant":"","model":"","priority":0.0,"deadline":null,"estimate":5.0,"group":"","resumable":false,"retries":0,"grace":30.0,"run_as":null,"held":false,"hidden":[]}','{}','done','',NULL,0,0,NULL,1700000000.0,1700000000.0,1700000006.0);
INSERT INTO "jobs" VALUES(2,'j2','ann','{"command":["train"],"request":{"alternatives":[{"groups":[{"most":4,"each":{"gpus":1,"share":1000,"gpu_memory":0,"cpu":null,"memory":null},"least":4}],"types":[]}],"modes":[{"name":"plain","memory_factor":1.0,"time_factor":1.0}],"labels":[],"datasets":[]},"name":"j2","owner":"ann","directory":"/","environment":{},"tenant":"","model":"","priority":0.0,"deadline":null,"estimate":100.0,"group":"","resumable":false,"retries":0,"grace":30.0,"run_as":null,"held":false,"hidden":["TOKEN"]}','{"TOKEN":"x"}','running','',NULL,0,NULL,NULL,1700000008.0,1700000008.0,NULL);
INSERT INTO "jobs" VALUES(3,'j3','bob','{"command":["train"],"request":{"alternatives":[{"groups":[{"most":4,"each":{"gpus":1,"share":1000,"gpu_memory":0,"cpu":null,"memory":null},"least":4}],"types":[]}],"modes":[{"name":"plain","memory_factor":1.0,"time_factor":1.0}],"labels":[],"datasets":[]},"name":"j3","owner":"bob","directory":"/","environment":{},"tenant":"","model":"","priority":0.0,"deadline":null,"estimate":7.0,"group":"","resumable":false,"retries":0,"grace":30.0,"run_as":null,"held":true,"hidden":[]}','{}','held','',NULL,0,NULL,NULL,1700000012.0,NULL,NULL);
CREATE TABLE meta (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema','1');
INSERT INTO "meta" VALUES('anchor','{"boot":"first","offset":0.0}');
INSERT INTO "meta" VALUES('parts','{"allocator": null, "costs": {"by_model": {}, "checkpoint_every": 1800.0, "first_start": 0.0, "move": null, "restart": 0.0, "resume": 1.0, "stop": 2.0}, "placement": null, "policy": "fifo", "predictor": null, "profiles": null, "span_penalty": 0.0, "type_factors": {}}');
CREATE TABLE plans (
	sequence BIGINT NOT NULL, 
	actions TEXT NOT NULL, 
	wake_at FLOAT, 
	PRIMARY KEY (sequence)
);
INSERT INTO "plans" VALUES(1,'[["Start",{"job":1,"allocation":{"parts":[{"node":0,"devices":3,"cpu":0,"memory":0,"share":1000,"gpu_memory":0}],"gpus":2,"mode":0,"milli_gpus":2000},"cause":"fits","awaits":[]}]]',NULL);
INSERT INTO "plans" VALUES(2,'[]',NULL);
INSERT INTO "plans" VALUES(3,'[]',NULL);
INSERT INTO "plans" VALUES(4,'[["Start",{"job":2,"allocation":{"parts":[{"node":0,"devices":15,"cpu":0,"memory":0,"share":1000,"gpu_memory":0}],"gpus":4,"mode":0,"milli_gpus":4000},"cause":"fits","awaits":[]}]]',NULL);
INSERT INTO "plans" VALUES(5,'[]',NULL);
CREATE TABLE snapshots (
	sequence BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	PRIMARY KEY (sequence)
);
CREATE INDEX ix_jobs_state ON jobs (state);
CREATE INDEX ix_jobs_owner ON jobs (owner);
CREATE INDEX ix_attempts_ended ON attempts (ended);
COMMIT;
